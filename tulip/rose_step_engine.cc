// The real engine behind tulip/step_engine.h. In a file of its own, so that a test with a fake
// engine links no ROSE.
#include <utility>

#include "tulip/core.h"

namespace bouquet::tulip {
namespace {

class RoseStepEngine final : public StepEngine {
 public:
  explicit RoseStepEngine(std::unique_ptr<rose::Engine> engine) : engine_(std::move(engine)) {}
  rose::LazyTensor Step(const rose::Batch& batch) override { return engine_->Step(batch); }
  const rose::EngineInfo& info() const override { return engine_->info(); }
  GraphUse graph_use() const override {
    const rose::GraphCounts counts = engine_->graph_counts();
    return {counts.replays, counts.captures, counts.evictions};
  }
  int32_t PaddedTokens(int32_t num_tokens, int32_t num_sequences) const override {
    return engine_->PaddedTokens(num_tokens, num_sequences);
  }

 private:
  std::unique_ptr<rose::Engine> engine_;
};

}  // namespace

Result<std::unique_ptr<Core>> Core::Start(std::unique_ptr<rose::Engine> engine,
                                          const CoreOptions& options, Metrics& metrics,
                                          const Clock& clock) {
  return Start(std::make_unique<RoseStepEngine>(std::move(engine)), options, metrics, clock);
}

}  // namespace bouquet::tulip
