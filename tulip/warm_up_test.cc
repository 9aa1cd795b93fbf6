#include "tulip/warm_up.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"

namespace bouquet::tulip {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

/// Answers at once and moves the clock by what the step is said to cost.
class TimedEngine final : public StepEngine {
 public:
  TimedEngine(testing::FakeClock& clock, std::function<double(int32_t)> cost_us)
      : clock_(clock), cost_us_(std::move(cost_us)) {
    info_.limits = {100, 2, 128, 2048, 64, 4};
  }

  rose::LazyTensor Step(const rose::Batch& batch) override {
    EXPECT_LE(batch.num_sequences(), info_.limits.max_sequences);
    for (const int32_t id : batch.token_ids) {
      EXPECT_LT(id, info_.limits.vocabulary_rows);
    }
    tokens.push_back(batch.num_tokens());
    clock_.Advance(
        std::chrono::nanoseconds(static_cast<int64_t>(1000 * cost_us_(batch.num_tokens()))));
    return rose::LazyTensor(&source_);
  }
  const rose::EngineInfo& info() const override { return info_; }

  std::vector<int32_t> tokens;
  Status error;

 private:
  struct Source final : rose::LazyTensor::Source {
    explicit Source(TimedEngine& engine) : owner(engine) {}
    bool IsReady() const override { return true; }
    Result<rose::StepResult> Wait() override {
      if (!owner.error.ok()) {
        return owner.error;
      }
      return rose::StepResult{};
    }
    TimedEngine& owner;
  };

  testing::FakeClock& clock_;
  std::function<double(int32_t)> cost_us_;
  rose::EngineInfo info_;
  Source source_{*this};
};

TEST(WarmUpTest, MeasuresGrowingStepsUntilALargerOneGainsNothing) {
  testing::FakeClock clock;
  // Flat to 200 tokens, then proportional: 256 tokens are the best throughput.
  TimedEngine engine(clock, [](int32_t tokens) { return tokens <= 256 ? 1000.0 : tokens * 4.0; });
  const auto points = MeasureStepCost(engine, {.budget = milliseconds(1000)}, clock);
  ASSERT_TRUE(points.ok());
  EXPECT_THAT(engine.tokens, ElementsAre(16, 16, 64, 128, 256, 512));
  EXPECT_DOUBLE_EQ(points.value().back().step_us, 2048);
}

TEST(WarmUpTest, StartsNoStepThatWouldPassTheBudget) {
  testing::FakeClock clock;
  TimedEngine engine(clock, [](int32_t tokens) { return 500.0 + tokens * 50; });
  const auto points = MeasureStepCost(engine, {.budget = milliseconds(30)}, clock);
  ASSERT_TRUE(points.ok());
  EXPECT_LT(clock.Now(), TimePoint(milliseconds(30)));
  EXPECT_GE(points.value().size(), 3U);
}

TEST(WarmUpTest, MeasuresASlowEngineOnce) {
  testing::FakeClock clock;
  TimedEngine engine(clock, [](int32_t) { return 200'000.0; });
  const auto points = MeasureStepCost(engine, {}, clock);
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(points.value().size(), 1U);
  EXPECT_THAT(engine.tokens, ElementsAre(16));
}

TEST(WarmUpTest, ReportsAStepThatFails) {
  testing::FakeClock clock;
  TimedEngine engine(clock, [](int32_t) { return 1.0; });
  engine.error = Internal("no device");
  EXPECT_EQ(MeasureStepCost(engine, {}, clock).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace bouquet::tulip
