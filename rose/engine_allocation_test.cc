// A test program of its own, since it replaces operator new.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "rose/engine.h"
#include "testing/allocation_count.h"
#include "testing/random_model.h"
#include "testing/test_data.h"

namespace bouquet::rose {
namespace {

using ::bouquet::testing::AllocationCount;
using ::bouquet::testing::RandomFamily;
using ::bouquet::testing::TemporaryFolder;

constexpr int32_t kMaxTokens = 96;

// The batches are made first: building them is the scheduler's work.
std::vector<Batch> RandomBatches(int count, bool with_types) {
  std::mt19937 random(20261129);
  std::vector<Batch> batches(static_cast<size_t>(count));
  for (Batch& batch : batches) {
    const auto target = static_cast<int32_t>(1 + random() % kMaxTokens);
    while (batch.num_tokens() < target) {
      const size_t room = static_cast<size_t>(target - batch.num_tokens());
      std::vector<int32_t> ids(1 + random() % room);
      for (int32_t& id : ids) {
        id = static_cast<int32_t>(random() % 300);
      }
      std::vector<uint8_t> types;
      if (with_types && random() % 2 == 0) {
        types.assign(ids.size(), 1);
      }
      model::OutputSpec output;
      output.dtype = static_cast<model::RowDtype>(random() % 4);
      output.dimensions = IsSignBits(output.dtype) ? 8 : static_cast<uint32_t>(random() % 17);
      std::vector<TokenSpan> spans;
      if (random() % 3 == 0) {
        const auto length = static_cast<int32_t>(ids.size());
        for (int32_t begin = 0; begin < length; begin += 8) {
          spans.push_back({begin, std::min(begin + 7, length)});
        }
      }
      batch.Add(ids, types, 0, output, spans);
    }
  }
  return batches;
}

class EngineAllocationTest : public ::testing::TestWithParam<RandomFamily> {
 protected:
  EngineAllocationTest() {
    ::bouquet::testing::WriteRandomModel(
        folder_.path() / "m",
        {.family = GetParam(), .pooling_modes = {"mean"}, .dense_out_features = 16});
  }

  void ExpectNoAllocationIn(int num_steps, const EngineOptions& options) {
    const auto opened = model::ModelFolder::Open(folder_.path() / "m");
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const auto engine = Engine::Load(*opened, options);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    const std::vector<Batch> batches = RandomBatches(num_steps, GetParam() == RandomFamily::kBert);
    const int64_t before = AllocationCount();
    int failures = 0;
    for (const Batch& batch : batches) {
      LazyTensor step = (*engine)->Step(batch);
      failures += step.Wait().ok() ? 0 : 1;
    }
    EXPECT_EQ(AllocationCount() - before, 0);
    EXPECT_EQ(failures, 0);
  }

  TemporaryFolder folder_;
};

TEST_P(EngineAllocationTest, AThousandStepsOfVaryingShapesAllocateNothing) {
  ExpectNoAllocationIn(1000, {.dtype = "float32", .threads = 1, .max_step_tokens = kMaxTokens});
}

TEST_P(EngineAllocationTest, StepsInBfloat16AllocateNothing) {
  ExpectNoAllocationIn(200, {.dtype = "bfloat16", .threads = 1, .max_step_tokens = kMaxTokens});
}

// Few steps: on a busy machine workers wait long for each other.
TEST_P(EngineAllocationTest, StepsOfSeveralThreadsAllocateNothing) {
  ExpectNoAllocationIn(50, {.threads = 3, .max_step_tokens = kMaxTokens});
}

INSTANTIATE_TEST_SUITE_P(Families, EngineAllocationTest,
                         ::testing::Values(RandomFamily::kBert, RandomFamily::kQwen3Causal),
                         [](const auto& family) {
                           return family.param == RandomFamily::kBert ? "bert" : "qwen3";
                         });

}  // namespace
}  // namespace bouquet::rose
