#include "tulip/core.h"

#include <utility>

#include "base/log.h"
#include "tulip/step_cost.h"
#include "tulip/warm_up.h"

namespace bouquet::tulip {

Result<std::unique_ptr<Core>> Core::Start(std::unique_ptr<StepEngine> engine,
                                          const CoreOptions& options, Metrics& metrics,
                                          const Clock& clock) {
  ASSIGN_OR_RETURN(CoreDescription facts, DescribeCore(engine->info(), options));
  ASSIGN_OR_RETURN(const std::vector<StepCost::Point> points,
                   MeasureStepCost(*engine, options.warm_up, clock));
  std::unique_ptr<Core> core(
      new Core(std::move(engine), std::move(facts), options, points, metrics, clock));
  const CoreDescription& description = core->Describe();
  for (const StepCost::Point& point : points) {
    LogDebug("step cost of {}: {} tokens in {:.0f} us", description.model_name, point.tokens,
             point.step_us);
  }
  LogDebug("serving {}: steps of {} tokens, about {:.0f} tokens/s, queue of {} ms",
           description.model_name, description.step_tokens, core->Load().tokens_per_second,
           description.max_queue.count());
  return core;
}

Core::Core(std::unique_ptr<StepEngine> engine, CoreDescription description,
           const CoreOptions& options, std::span<const StepCost::Point> measured, Metrics& metrics,
           const Clock& clock)
    : batcher_(std::move(engine), std::move(description), options, measured, metrics, clock),
      loop_thread_([this] {
        batcher_.loop().Run();
        const std::lock_guard lock(loop_ended_mutex_);
        loop_ended_ = true;
        loop_ended_changed_.notify_all();
      }),
      completer_thread_([this] { batcher_.completer().Run(); }) {}

Core::~Core() { Stop(std::chrono::milliseconds(0)); }

void Core::Stop(std::chrono::milliseconds drain_timeout) {
  const std::lock_guard stop_lock(stop_mutex_);
  if (stopped_) {
    return;
  }
  batcher_.Close();
  {
    std::unique_lock lock(loop_ended_mutex_);
    loop_ended_changed_.wait_for(lock, drain_timeout, [this] { return loop_ended_; });
  }
  batcher_.Abandon();
  loop_thread_.join();
  completer_thread_.join();
  stopped_ = true;
}

}  // namespace bouquet::tulip
