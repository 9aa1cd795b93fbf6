// Counts calls of operator new, so this file is a test program of its own.
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include <gtest/gtest.h>

#include "rose/engine.h"
#include "testing/random_model.h"
#include "testing/test_data.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* CountedAllocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (data == nullptr) {
    std::abort();
  }
  return data;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return CountedAllocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return CountedAllocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

namespace bouquet::rose {
namespace {

using ::bouquet::testing::RandomFamily;
using ::bouquet::testing::RandomModelOptions;
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
      batch.Add(ids, types, 0, {.dimensions = static_cast<uint32_t>(random() % 17)});
    }
  }
  return batches;
}

class EngineAllocationTest : public ::testing::TestWithParam<RandomFamily> {};

TEST_P(EngineAllocationTest, AThousandStepsOfVaryingShapesAllocateNothing) {
  const TemporaryFolder folder;
  const bool is_bert = GetParam() == RandomFamily::kBert;
  ::bouquet::testing::WriteRandomModel(folder.path() / "m",
                                       {.family = GetParam(), .dense_out_features = 16});
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto opened = model::ModelFolder::Open(folder.path() / "m");
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const auto engine =
        Engine::Load(*opened, {.dtype = dtype, .threads = 2, .max_step_tokens = kMaxTokens});
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    const std::vector<Batch> batches = RandomBatches(1000, is_bert);
    const int64_t before = allocations;
    int64_t rows = 0;
    for (const Batch& batch : batches) {
      LazyTensor step = (*engine)->Step(batch);
      const Result<StepResult> result = step.Wait();
      rows += result.ok() ? static_cast<int64_t>(result->statuses.size()) : 0;
    }
    EXPECT_EQ(allocations - before, 0) << dtype;
    EXPECT_GE(rows, 1000) << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EngineAllocationTest,
                         ::testing::Values(RandomFamily::kBert, RandomFamily::kQwen3Causal),
                         [](const auto& family) {
                           return family.param == RandomFamily::kBert ? "bert" : "qwen3";
                         });

}  // namespace
}  // namespace bouquet::rose
