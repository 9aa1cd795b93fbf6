#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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
#include "tulip/step_cost.h"
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

/// The facts that `options` make of an engine; `step_tokens` as asked for, which may be 0. Error:
/// kInvalidArgument for options that the engine cannot serve. Pure.
Result<CoreDescription> DescribeCore(const rose::EngineInfo& info, const CoreOptions& options);

/// All of a core but its two threads: whoever owns it runs serving loop and completer. Core gives
/// each a thread; a simulation takes their turns itself.
class Batcher {
 public:
  /// `description`: of DescribeCore. `measured`: what steps take on this engine, from which the
  /// default of step_tokens follows. `metrics` and `clock` must outlive the batcher.
  Batcher(std::unique_ptr<StepEngine> engine, CoreDescription description,
          const CoreOptions& options, std::span<const StepCost::Point> measured, Metrics& metrics,
          const Clock& clock);
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// As Core::Submit.
  Status Submit(std::vector<Sequence> sequences, const std::shared_ptr<ChunkReply>& reply);
  const CoreDescription& Describe() const { return description_; }
  CoreLoad Load() const;  // thread: any
  /// As Core::CheckIdentity.
  Status CheckIdentity(std::string_view expected) const;

  /// Refuses new work; the loop ends when the rest is done. Thread: any.
  void Close() { admission_.Close(); }
  /// What waits is answered kUnavailable, by the loop. Thread: any.
  void Abandon() { admission_.Abandon(); }

  ServingLoop& loop() { return loop_; }
  Completer& completer() { return completer_; }
  // What the loop waits for.
  Admission& admission() { return admission_; }
  const InFlight& in_flight() const { return in_flight_; }

 private:
  Status Check(const std::vector<Sequence>& sequences, TimePoint now) const;
  Status CheckSequence(const Sequence& sequence, const Sequence& first) const;
  uint32_t Dimensions(const model::OutputSpec& output) const;  // resolved

  const std::unique_ptr<StepEngine> engine_;
  const StepCost cost_;  // as measured at the start
  const CoreDescription description_;
  const Clock& clock_;
  CoreMetrics metrics_;
  Admission admission_;
  InFlight in_flight_;
  ServingLoop loop_;
  Completer completer_;
};

}  // namespace bouquet::tulip
