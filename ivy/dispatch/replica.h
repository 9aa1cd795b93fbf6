#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "model/output_spec.h"
#include "model/traffic_class.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy {

/// What a replica is. Another one may be there after it was lost.
struct ReplicaDescription {
  std::string model_name;
  std::string identity;              // of the model folder: replicas of another one do not mix
  std::string numerics_fingerprint;  // differs: vectors may differ in their last bits
  std::string device;
  std::string device_description;
  std::string dtype;
  int32_t width = 0;
  int32_t vocabulary_rows = 0;
  int32_t model_max_tokens = 0;  // longest input the model allows
  int32_t max_input_tokens = 0;  // the same, or what the operator lowered it to
  int32_t step_tokens = 0;
  int32_t max_batch_sequences = 0;
  int64_t max_queue_ms = 0;
  int64_t weight_bytes = 0;

  bool operator==(const ReplicaDescription&) const = default;
};

/// How a replica is doing, as far as is known without asking it.
struct ReplicaLoad {
  int64_t queued_tokens = 0;     // waiting or in a step, and what was sent since it last said
  double tokens_per_second = 0;  // measured
  bool ready = false;            // serves, and makes progress
  std::string reason_unready;    // empty when ready
};

/// Where a request stands in a distributed trace: W3C Trace Context, passed on as it came.
struct TraceContext {
  std::string parent;  // traceparent; empty: no trace
  std::string state;   // tracestate
};

/// The work that goes to one replica together: inputs of one request.
struct Chunk {
  std::vector<text::TokenSequence> sequences;
  model::OutputSpec output;
  model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
  Deadline deadline;
  std::string request_id;  // for logs and traces on the other side
  TraceContext trace;
  /// Stopped by whoever learns that the answer is no longer wanted: what has not been put into a
  /// step is dropped.
  std::stop_token cancelled;
};

/// The answer to a chunk, in its order.
struct ChunkRows {
  uint32_t dimensions = 0;
  std::vector<float> values;     // [num_sequences, dimensions]; zeros where a sequence failed
  std::vector<Status> statuses;  // [num_sequences]
  int64_t queue_us = 0;          // sum over the sequences
  int64_t step_us = 0;           // sum over the sequences
};

/// One inference server as Ivy sees it, in this process or behind a network. Three verbs: describe,
/// submit, report queued tokens. Thread: any.
class Replica {
 public:
  virtual ~Replica() = default;

  /// For messages: "in process", or an address.
  virtual std::string_view name() const = 0;

  /// Nothing until it has been reached.
  virtual std::optional<ReplicaDescription> Describe() const = 0;

  /// Resumes on the caller's executor; at the chunk's deadline at the latest. Error: for the chunk
  /// as a whole (kInvalidArgument, kOutOfRange, kResourceExhausted, kDeadlineExceeded,
  /// kUnavailable); what befalls single sequences is in `statuses`.
  virtual boost::asio::awaitable<Result<ChunkRows>> Submit(Chunk chunk) = 0;

  virtual ReplicaLoad Load() const = 0;
};

}  // namespace bouquet::ivy
