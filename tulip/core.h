#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "rose/engine.h"
#include "tulip/admission.h"
#include "tulip/chunk_reply.h"
#include "tulip/completer.h"
#include "tulip/core_metrics.h"
#include "tulip/in_flight.h"
#include "tulip/sequence.h"
#include "tulip/serving_loop.h"
#include "tulip/step_engine.h"
#include "tulip/warm_up.h"

namespace bouquet::tulip {

struct CoreOptions {
  std::string model_name;
  std::string identity;          // of the model folder
  int32_t model_max_tokens = 0;  // longest input the folder allows; 0: the engine's positions
  int32_t max_input_tokens = 0;  // --max-input-tokens, which can only lower it; 0: the same
  int32_t step_tokens = 0;       // --step-tokens; 0: from the measured curve
  int32_t max_batch_sequences = 512;
  std::chrono::milliseconds max_queue{2000};  // --max-queue-ms
  std::chrono::milliseconds bulk_age{500};
  WarmUpOptions warm_up;
};

/// Facts about a running core. Fixed from Start on.
struct CoreDescription {
  std::string model_name;
  std::string identity;
  rose::EngineInfo engine;
  int32_t model_max_tokens = 0;
  int32_t max_input_tokens = 0;
  int32_t step_tokens = 0;
  int32_t max_batch_sequences = 0;
  std::chrono::milliseconds max_queue{0};
};

/// The state of the queue now.
struct CoreLoad {
  int64_t queued_tokens = 0;     // wait for a step
  int64_t under_way_tokens = 0;  // are in one
  double tokens_per_second = 0;  // measured, at full steps
  bool accepting = true;         // false once it is stopping
  bool overdue = false;          // a step is far later than expected: not making progress
};

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
  Status Submit(std::vector<Sequence> sequences, const std::shared_ptr<ChunkReply>& reply);

  const CoreDescription& Describe() const { return description_; }
  CoreLoad Load() const;  // thread: any

  /// Refuses new work, finishes what was accepted, and ends the threads. What is not in a step
  /// after `drain_timeout` is answered kUnavailable. A caller that feeds chunks one after the other
  /// must be drained before. Thread: any; later calls wait for the first.
  void Stop(std::chrono::milliseconds drain_timeout);

 private:
  Core(std::unique_ptr<StepEngine> engine, CoreDescription description, const CoreOptions& options,
       const StepCost& cost, Metrics& metrics, const Clock& clock);

  Status Check(const std::vector<Sequence>& sequences, TimePoint now) const;
  Status CheckSequence(const Sequence& sequence, const Sequence& first) const;

  const std::unique_ptr<StepEngine> engine_;
  const CoreDescription description_;
  const Clock& clock_;
  CoreMetrics metrics_;
  Admission admission_;
  InFlight in_flight_;
  ServingLoop loop_;
  Completer completer_;

  std::mutex stop_mutex_;  // guards `stopped_` and the joins
  bool stopped_ = false;
  std::mutex loop_ended_mutex_;
  std::condition_variable loop_ended_changed_;
  bool loop_ended_ = false;
  std::thread loop_thread_;
  std::thread completer_thread_;
};

}  // namespace bouquet::tulip
