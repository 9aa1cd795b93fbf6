#include "rose/backend/cuda/attention/ragged_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rose/backend/cuda/attention/attention_test_batch.h"

// Every kernel against a plain loop in double precision over the same bfloat16 numbers.

namespace bouquet::rose::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kGuardRows = 7;  // after the last row of `out`: nobody may write there

#define REQUIRE_DEVICE()                                                          \
  if (int count_ = 0; cudaGetDeviceCount(&count_) != cudaSuccess) {               \
    GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(cudaGetLastError()); \
  }                                                                               \
  static_assert(true)

/// A batch on the device with everything that one step needs.
class Step {
 public:
  Step(const AttentionShape& shape, const AttentionBatch& batch, const std::vector<Bits>& rows)
      : shape_(shape),
        sizes_(batch.padded),
        rows_(rows),
        out_(static_cast<size_t>((batch.padded.num_tokens + kGuardRows) * OutWidth())),
        offsets_(batch.offsets()),
        biases_(DistanceBiases(shape)) {}

  int64_t OutWidth() const { return static_cast<int64_t>(shape_.num_heads) * shape_.head_dim; }

  void Poison() {
    out_.Write(std::vector<Bits>(static_cast<size_t>((sizes_.num_tokens + kGuardRows) * OutWidth()),
                                 kNanBits));
  }
  void Write(const AttentionBatch& batch, const std::vector<Bits>& rows) {
    offsets_.Write(batch.offsets());
    rows_.Write(rows);
    Poison();
  }
  void Launch(RaggedAttention& attention, cudaStream_t stream) {
    attention.Plan(shape_, sizes_, offsets_.data(), reinterpret_cast<__nv_bfloat16*>(out_.data()),
                   OutWidth(), stream);
    attention.Run(shape_, sizes_,
                  MakeArgs(shape_, rows_.data(), out_.data(), offsets_.data(), biases_.data()),
                  stream);
  }
  std::vector<Bits> Read() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return out_.Read();
  }

 private:
  AttentionShape shape_;
  AttentionSizes sizes_;
  DeviceArray<Bits> rows_;
  DeviceArray<Bits> out_;
  DeviceArray<int32_t> offsets_;
  DeviceArray<float> biases_;
};

/// Real rows near the reference, zeros in padded ones, poison after them. The weights and the
/// result are each rounded to bfloat16, by 2⁻⁹ at most; the kernels' exponentials add a little.
void ExpectNear(const AttentionShape& shape, const AttentionBatch& batch,
                const std::vector<Bits>& out, const ReferenceAttention& reference,
                int32_t skipped_sequence = -1) {
  const auto width = static_cast<size_t>(shape.num_heads * shape.head_dim);
  const std::vector<int32_t> offsets = batch.offsets();
  const auto num_tokens = static_cast<size_t>(batch.num_tokens());
  const auto is_skipped = [&](size_t token) {
    if (skipped_sequence < 0) {
      return false;
    }
    const auto first = static_cast<size_t>(offsets[static_cast<size_t>(skipped_sequence)]);
    return token >= first &&
           token <
               first + static_cast<size_t>(batch.lengths[static_cast<size_t>(skipped_sequence)]);
  };
  int mistakes = 0;
  for (size_t i = 0; i < out.size() && mistakes < 5; ++i) {
    const size_t token = i / width;
    if (token < num_tokens) {
      const double tolerance = 2.1 / 256 * reference.magnitude[i] + 1e-6;
      // Written so that NaN is a mistake.
      if (!is_skipped(token) && !(std::abs(ToFloat(out[i]) - reference.out[i]) <= tolerance)) {
        ++mistakes;
        ADD_FAILURE() << "token " << token << " column " << i % width << ": " << ToFloat(out[i])
                      << " instead of " << reference.out[i] << " ± " << tolerance;
      }
    } else if (token < static_cast<size_t>(batch.padded.num_tokens)) {
      if (out[i] != 0) {
        ++mistakes;
        ADD_FAILURE() << "padded row " << token << " holds " << ToFloat(out[i]) << ", not zero";
      }
    } else if (out[i] != kNanBits) {
      ++mistakes;
      ADD_FAILURE() << "row " << token << " after the step was written";
    }
  }
}

struct Kernel {
  std::string family;
  int32_t head_dim;
};

class RaggedAttentionTest : public ::testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    REQUIRE_DEVICE();
    auto attention =
        RaggedAttention::Make(kMaxTokens, kMaxSequences, GetParam().family, allocator_);
    if (!attention.ok() && GetParam().family == "fa3") {
      GTEST_SKIP() << attention.status().message();
    }
    ASSERT_TRUE(attention.ok()) << attention.status().ToString();
    attention_ = std::move(*attention);
  }

  AttentionShape Shape(int32_t num_heads, int32_t num_kv_heads,
                       AttentionMask mask = AttentionMask::kBidirectional,
                       int32_t window = 0) const {
    return {num_heads, num_kv_heads, GetParam().head_dim, mask, window};
  }
  bool MayReadPadding() const { return GetParam().family == "fa3" || GetParam().family == "auto"; }
  /// NaN, except for FA3 (which `auto` may take), whose contract asks for finite rows.
  Bits Padding() const { return MayReadPadding() ? ToBits(3.0F) : kNanBits; }

  void Check(const AttentionShape& shape, const AttentionBatch& batch) {
    if (!attention_->CheckServed(shape).ok()) {
      EXPECT_GT(shape.window, 0);
      EXPECT_EQ(GetParam().family, "fa3");
      return;
    }
    SCOPED_TRACE(attention_->NameOf(shape, batch.padded));
    const std::vector<Bits> rows = RandomRows(shape, batch, Padding(), 1);
    Step step(shape, batch, rows);
    step.Poison();
    step.Launch(*attention_, nullptr);
    ExpectNear(shape, batch, step.Read(), Reference(shape, batch, rows));
  }

  static constexpr int32_t kMaxTokens = 8192;
  static constexpr int32_t kMaxSequences = 256;
  DeviceAllocator allocator_{0.9};
  std::unique_ptr<RaggedAttention> attention_;
};

constexpr auto kBidirectional = AttentionMask::kBidirectional;
constexpr auto kCausal = AttentionMask::kCausal;

TEST_P(RaggedAttentionTest, ServesEveryLengthAroundTheTiles) {
  const auto batch = AttentionBatch::Of(
      {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000});
  Check(Shape(4, 2), batch);
  Check(Shape(4, 2, kCausal), batch);
}

TEST_P(RaggedAttentionTest, ServesOneSequenceAlone) {
  for (const int32_t length : {1, 2, 15, 16, 17, 64, 65, 129, 257, 600}) {
    SCOPED_TRACE(length);
    Check(Shape(2, 1), AttentionBatch::Of({length}));
    Check(Shape(2, 1, kCausal), AttentionBatch::Of({length}));
  }
}

TEST_P(RaggedAttentionTest, ServesEveryRatioOfQueryToKvHeads) {
  const auto batch = AttentionBatch::Of({1, 17, 64, 130, 300});
  for (const int32_t num_heads : {2, 4, 6, 16}) {
    SCOPED_TRACE(num_heads);
    Check(Shape(num_heads, 2), batch);
    Check(Shape(num_heads, 2, kCausal), batch);
  }
}

TEST_P(RaggedAttentionTest, SeesOnlyTheWindowOnBothSides) {
  const auto batch = AttentionBatch::Of({1, 65, 300, 700});
  const auto long_batch = AttentionBatch::Of({1100, 40, 1000});  // for which FA2 has larger tiles
  for (const int32_t window : {1, 16, 63, 64, 128, 200, 5000}) {
    SCOPED_TRACE(window);
    Check(Shape(4, 2, kBidirectional, window), batch);
    Check(Shape(4, 2, kCausal, window), batch);
  }
  for (const int32_t window : {3, 64, 257}) {
    SCOPED_TRACE(window);
    Check(Shape(2, 1, kBidirectional, window), long_batch);
    Check(Shape(2, 1, kCausal, window), long_batch);
  }
}

TEST_P(RaggedAttentionTest, AddsABiasByDistanceInTheOwnKernelsAlone) {
  AttentionShape shape = Shape(4, 2);
  shape.relative_bias = true;
  if (GetParam().family == "fa2" || GetParam().family == "fa3") {
    const Status status = attention_->CheckServed(shape);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr("a bias by distance"));
    return;
  }
  for (const int32_t length : {1, 2, 15, 16, 17, 32, 33, 64, 65, 91, 92, 129, 257, 600}) {
    SCOPED_TRACE(length);
    Check(shape, AttentionBatch::Of({length}));
  }
  const auto mixed = AttentionBatch::Of({1, 16, 17, 63, 64, 65, 127, 128, 129, 300, 700});
  for (const auto mask : {kBidirectional, kCausal}) {
    for (const int32_t window : {0, 20, 100}) {
      shape.mask = mask;
      shape.window = window;
      Check(shape, mixed);
      EXPECT_THAT(attention_->NameOf(shape, mixed.padded), HasSubstr("own_"));
    }
  }
}

TEST_P(RaggedAttentionTest, AddsABiasByDistanceInPaddedSteps) {
  if (GetParam().family == "fa2" || GetParam().family == "fa3") {
    GTEST_SKIP() << "own kernels only";
  }
  AttentionShape shape = Shape(4, 4);
  shape.relative_bias = true;
  AttentionBatch batch = AttentionBatch::Of({100, 1, 33, 260});
  batch.padded = {16, 1024, 512};
  Check(shape, batch);
  batch = AttentionBatch::Of({3, 16, 9});
  batch.padded = {8, 128, 16};
  Check(shape, batch);
}

TEST_P(RaggedAttentionTest, ServesManyShortSequences) {
  for (const int32_t longest : {16, 32, 40}) {
    SCOPED_TRACE(longest);
    std::vector<int32_t> lengths(256);
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = static_cast<int32_t>(i) * 7 % longest + 1;
    }
    AttentionBatch batch = AttentionBatch::Of(lengths);
    Check(Shape(2, 2), batch);
    Check(Shape(2, 2, kCausal), batch);
    Check(Shape(2, 2, kBidirectional, 3), batch);
    batch.lengths.resize(200);
    Check(Shape(2, 2), batch);
  }
}

TEST_P(RaggedAttentionTest, ServesVeryUnequalLengths) {
  Check(Shape(2, 1), AttentionBatch::Of({1, 3, 1900, 1, 64, 2}));
  Check(Shape(2, 1, kCausal), AttentionBatch::Of({1, 3, 1900, 1, 64, 2}));
}

TEST_P(RaggedAttentionTest, ZeroesPaddedRowsAndReadsNothingFromThem) {
  for (const auto mask : {kBidirectional, kCausal}) {
    AttentionBatch batch = AttentionBatch::Of({100, 1, 33, 260});
    batch.padded = {16, 1024, 512};
    Check(Shape(4, 2, mask), batch);
    batch = AttentionBatch::Of({3});
    batch.padded = {4, 64, 64};
    Check(Shape(4, 2, mask), batch);
    batch.lengths = {16, 48};
    batch.padded = {2, 64, 64};
    Check(Shape(4, 2, mask), batch);
  }
  AttentionBatch batch = AttentionBatch::Of({100, 1, 33, 260});
  batch.padded = {16, 1024, 512};
  Check(Shape(4, 2, kBidirectional, 20), batch);
}

TEST_P(RaggedAttentionTest, KeepsNanInItsSequence) {
  if (MayReadPadding()) {
    GTEST_SKIP() << "fa3 multiplies rows of other sequences by zero";
  }
  const auto batch = AttentionBatch::Of({70, 129, 5, 200});
  for (const int32_t poisoned : {0, 1, 2, 3}) {
    for (const int32_t window : {0, 20}) {
      const AttentionShape shape = Shape(4, 2, kBidirectional, window);
      std::vector<Bits> rows = RandomRows(shape, batch, 0, 2);
      const ReferenceAttention reference = Reference(shape, batch, rows);
      const std::vector<int32_t> offsets = batch.offsets();
      const auto first = offsets[static_cast<size_t>(poisoned)] * RowWidth(shape);
      const auto last = offsets[static_cast<size_t>(poisoned) + 1] * RowWidth(shape);
      std::fill(rows.begin() + first, rows.begin() + last, kNanBits);
      Step step(shape, batch, rows);
      step.Poison();
      step.Launch(*attention_, nullptr);
      ExpectNear(shape, batch, step.Read(), reference, poisoned);
    }
  }
}

TEST_P(RaggedAttentionTest, ReplaysWithOtherLengthsBitForBitAsEager) {
  std::vector<AttentionBatch> batches;
  for (const std::vector<int32_t>& lengths : std::vector<std::vector<int32_t>>{
           {256, 100, 1, 200}, {1}, {128, 128, 128}, {3, 5, 7, 11, 13, 255, 1, 64}, {16, 250}}) {
    batches.push_back(AttentionBatch::Of(lengths));
    batches.back().padded = {8, 640, 256};
  }
  for (const auto mask : {kBidirectional, kCausal}) {
    const AttentionShape shape = Shape(4, 2, mask);
    Step step(shape, batches[0], RandomRows(shape, batches[0], Padding(), 3));
    step.Launch(*attention_, nullptr);  // loads the modules, which capturing must not
    ASSERT_CUDA(cudaDeviceSynchronize());
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    step.Launch(*attention_, stream);
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    ASSERT_CUDA(cudaGraphInstantiate(&replay, graph, 0));
    for (size_t i = 0; i < batches.size(); ++i) {
      SCOPED_TRACE(i);
      const std::vector<Bits> rows =
          RandomRows(shape, batches[i], Padding(), static_cast<unsigned>(10 + i));
      step.Write(batches[i], rows);
      step.Launch(*attention_, nullptr);
      const std::vector<Bits> eager = step.Read();
      ExpectNear(shape, batches[i], eager, Reference(shape, batches[i], rows));
      step.Poison();
      ASSERT_CUDA(cudaGraphLaunch(replay, stream));
      EXPECT_TRUE(step.Read() == eager);
    }
    ASSERT_CUDA(cudaGraphExecDestroy(replay));
    ASSERT_CUDA(cudaGraphDestroy(graph));
    ASSERT_CUDA(cudaStreamDestroy(stream));
  }
}

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels;
  for (const int32_t head_dim : {8, 12, 16, 32, 64, 80, 128, 256}) {
    kernels.push_back({"own", head_dim});
  }
  for (const std::string family : {"fa2", "fa3", "auto"}) {
    kernels.push_back({family, 64});
    kernels.push_back({family, 128});
  }
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Kernels, RaggedAttentionTest, ::testing::ValuesIn(Kernels()),
                         [](const auto& test) {
                           return test.param.family + "_" + std::to_string(test.param.head_dim);
                         });

TEST(RaggedAttentionMakeTest, NamesTheKernelsThatExist) {
  DeviceAllocator allocator(0.9);
  const auto attention = RaggedAttention::Make(1024, 16, "flash", allocator);
  ASSERT_EQ(attention.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(attention.status().message(), HasSubstr("auto, own, fa2, fa3: flash"));
}

TEST(RaggedAttentionMakeTest, RefusesStepsLargerThanItsLists) {
  DeviceAllocator allocator(0.9);
  EXPECT_EQ(RaggedAttention::Make(1024, 513, "", allocator).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RaggedAttention::Make(65537, 512, "", allocator).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RaggedAttention::Make(0, 1, "", allocator).code(), StatusCode::kInvalidArgument);
}

TEST(RaggedAttentionMakeTest, SaysWhichShapesAreNotServed) {
  DeviceAllocator allocator(0.9);
  REQUIRE_DEVICE();
  const auto attention = RaggedAttention::Make(1024, 16, "fa2", allocator);
  ASSERT_TRUE(attention.ok()) << attention.status().ToString();
  const Status status = (*attention)->CheckServed({4, 2, 32, kBidirectional, 0});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("head size 32"));
  EXPECT_TRUE((*attention)->CheckServed({4, 2, 64, kCausal, 7}).ok());
}

TEST(RaggedAttentionMakeTest, ItsMemoryCountsInTheFraction) {
  REQUIRE_DEVICE();
  DeviceAllocator allocator(1e-6);
  const auto attention = RaggedAttention::Make(65536, 512, "", allocator);
  ASSERT_EQ(attention.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(attention.status().message(), HasSubstr("the work lists of attention"));
  EXPECT_THAT(attention.status().message(), HasSubstr("--memory-fraction"));
}

TEST(RaggedAttentionMakeTest, ServesTheLargestStep) {
  DeviceAllocator allocator(0.9);
  REQUIRE_DEVICE();
  const AttentionShape shape{1, 1, 32, kBidirectional, 0};
  std::vector<int32_t> lengths(512, 16);
  lengths[100] = 2000;
  AttentionBatch batch = AttentionBatch::Of(lengths);
  batch.padded = {512, 65536, 2048};
  const auto attention = RaggedAttention::Make(65536, 512, "", allocator);
  ASSERT_TRUE(attention.ok()) << attention.status().ToString();
  const std::vector<Bits> rows = RandomRows(shape, batch, kNanBits, 5);
  Step step(shape, batch, rows);
  step.Poison();
  step.Launch(**attention, nullptr);
  ExpectNear(shape, batch, step.Read(), Reference(shape, batch, rows));
}

}  // namespace
}  // namespace bouquet::rose::cuda
