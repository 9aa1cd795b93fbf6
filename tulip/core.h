#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "rose/engine.h"
#include "tulip/batcher.h"
#include "tulip/chunk_reply.h"
#include "tulip/sequence.h"
#include "tulip/step_engine.h"

namespace bouquet::tulip {

/// The inference server without a network: sequences in, rows out. One model, one engine, two
/// threads (serving loop, completer). What was accepted is answered, whatever happens: computed,
/// or with a status that says why not.
class Core {
 public:
  /// Measures the step cost, then serves. `metrics` and `clock` must outlive the core. Error:
  /// kInvalidArgument for options that the engine cannot serve; what a warm-up step failed with.
  static Result<std::unique_ptr<Core>> Start(std::unique_ptr<StepEngine> engine,
                                             const CoreOptions& options, Metrics& metrics,
                                             const Clock& clock);
  static Result<std::unique_ptr<Core>> Start(std::unique_ptr<rose::Engine> engine,
                                             const CoreOptions& options, Metrics& metrics,
                                             const Clock& clock);
  /// Stops without draining.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Accepts a chunk whole, or refuses it at once and never calls `reply`, which serves one Submit
  /// only. The sequences must agree in OutputSpec. A sequence that fails alone, or cannot be
  /// computed, has kInternal in its outcome. Thread: any. Error: kInvalidArgument (field
  /// `sequences[i]`), kOutOfRange (over --max-input-tokens), kDeadlineExceeded, kResourceExhausted,
  /// kUnavailable.
  Status Submit(std::vector<Sequence> sequences, const std::shared_ptr<ChunkReply>& reply) {
    return batcher_.Submit(std::move(sequences), reply);
  }

  const CoreDescription& Describe() const { return batcher_.Describe(); }
  CoreLoad Load() const { return batcher_.Load(); }  // thread: any

  /// Refuses new work, finishes what was accepted, and ends the threads. What is not in a step
  /// after `drain_timeout` is answered kUnavailable. A caller that feeds chunks one after the other
  /// must be drained before. Thread: any; later calls wait for the first.
  void Stop(std::chrono::milliseconds drain_timeout);

 private:
  Core(std::unique_ptr<StepEngine> engine, CoreDescription description, const CoreOptions& options,
       std::span<const StepCost::Point> measured, Metrics& metrics, const Clock& clock);

  Batcher batcher_;

  std::mutex stop_mutex_;  // guards `stopped_` and the joins
  bool stopped_ = false;
  std::mutex loop_ended_mutex_;
  std::condition_variable loop_ended_changed_;
  bool loop_ended_ = false;
  std::thread loop_thread_;
  std::thread completer_thread_;
};

}  // namespace bouquet::tulip
