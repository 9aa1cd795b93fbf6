#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/sliced_job.h"
#include "ivy/encode/tokenize_job.h"

namespace bouquet::ivy {

struct TokenizeOptions {
  int32_t num_threads = 2;  // text workers; 0: everything inline
  /// Requests with up to this much text are tokenized where they are: handing them over costs
  /// more than the work.
  size_t inline_bytes = 4096;
  /// What a worker takes at a time, so that a bulk request does not hold it for long.
  size_t slice_bytes = 65'536;
  size_t max_waiting_requests = 1024;  // per class, beyond which kResourceExhausted
};

struct TokenizedInputs {
  std::vector<text::TokenSequence> sequences;  // [num_inputs]
  int64_t tokenize_us = 0;                     // waiting for a worker included
};

/// Texts and ids of a request → token sequences, checked; and other work on texts. Short ones
/// inline on the caller's executor, longer ones by the text workers, which take slices of requests
/// in turn, interactive ones first, whatever tokenizer each of them needs. Thread: any.
class TokenizeStage {
 public:
  /// `metrics` and `clock` must outlive the stage.
  TokenizeStage(const TokenizeOptions& options, Metrics& metrics, const std::string& model,
                const Clock& clock);
  /// Finishes what waits. Executors whose coroutines wait here must live until then.
  ~TokenizeStage();
  TokenizeStage(const TokenizeStage&) = delete;
  TokenizeStage& operator=(const TokenizeStage&) = delete;

  /// `request` and `source` must live until this returns; ids are moved out of the request. Error:
  /// kInvalidArgument with the input's path (empty, over-long, id out of range, invalid UTF-8),
  /// kOutOfRange (over an operator's limit), kUnimplemented (text not served), kResourceExhausted
  /// (too many requests wait), kCancelled, kDeadlineExceeded.
  boost::asio::awaitable<Result<TokenizedInputs>> Run(EncodeRequest& request,
                                                      const TextSource& source,
                                                      const TokenizeLimits& limits);

  /// Any job, which has not been cut yet. Error: the job's own, or kResourceExhausted.
  boost::asio::awaitable<Status> Run(std::shared_ptr<SlicedJob> job);

  const Clock& clock() const { return clock_; }

 private:
  using Job = std::shared_ptr<SlicedJob>;  // shared by the coroutine and the workers

  bool RunsInline(const SlicedJob& job) const;
  void Work();
  void Count(const SlicedJob& job);

  const TokenizeOptions options_;
  const Clock& clock_;
  Gauge& waiting_requests_;
  Counter& rejected_;
  Counter& cancelled_;
  Counter& expired_;

  BoundedQueue<Job> queue_;  // a lane per class
  std::vector<std::thread> workers_;
};

}  // namespace bouquet::ivy
