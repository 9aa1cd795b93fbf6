#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"
#include "testing/allocation_count.h"
#include "testing/test_data.h"

namespace bouquet::rose {
namespace {

class StepTest : public BackendTest {};
INSTANTIATE_ON_ALL_BACKENDS(StepTest);

/// What a CPU promises beyond the contract.
class CpuStepTest : public BackendTest {};
INSTANTIATE_ON_CPUS(CpuStepTest);

/// A small decoder block that uses every op, on buffers of its own.
class Block {
 public:
  static constexpr int64_t kWidth = 64;
  static constexpr int64_t kInner = 96;
  static constexpr int32_t kHeads = 4;
  static constexpr int32_t kKeyHeads = 2;
  static constexpr int32_t kHeadDim = 16;
  static constexpr int64_t kQkvWidth = (kHeads + 2 * kKeyHeads) * kHeadDim;

  Block(Backend& backend, int32_t max_tokens, int32_t max_sequences, int32_t max_rows)
      : backend_(backend), random_(3) {
    word_ = Weight(100, kWidth, backend.compute_dtype());
    gain_ = Weight(1, kWidth, Dtype::kFloat32);
    head_gain_ = Weight(1, kHeadDim, Dtype::kFloat32);
    query_key_value_ = Linear({kQkvWidth}, kWidth, Activation::kNone, false);
    output_ = Linear({kWidth}, kWidth, Activation::kNone, false);
    gate_up_ = Linear({kInner, kInner}, kWidth, Activation::kSilu, true);
    down_ = Linear({kWidth}, kInner, Activation::kNone, false);
    EXPECT_TRUE(backend.FinishLoading(max_tokens, max_sequences, max_rows).ok());
    const StepSizes largest = backend.LargestStep(max_tokens, max_sequences, max_rows);
    max_tokens = largest.num_tokens;
    hidden_ = Allocate(backend.compute_dtype(), max_tokens, kWidth);
    qkv_ = Allocate(backend.compute_dtype(), max_tokens, kQkvWidth);
    context_ = Allocate(backend.compute_dtype(), max_tokens, kWidth);
    inner_ = Allocate(backend.compute_dtype(), max_tokens, kInner);
    pooled_ = Allocate(Dtype::kFloat32, largest.num_rows, kWidth);
  }

  /// NaN wherever a step has not written yet.
  void Poison() {
    for (const Tensor* tensor : {&hidden_, &qkv_, &context_, &inner_, &pooled_}) {
      const TensorView view = tensor->view();
      const std::vector<std::byte> ones(
          static_cast<size_t>(view.rows * view.cols) * DtypeBytes(view.dtype), std::byte{0xff});
      EXPECT_TRUE(backend_.CopyIn(ones.data(), view).ok());
    }
  }

  void Forward(const StepInputs& inputs) {
    const auto rows = [&](const Tensor& tensor) {
      return tensor.view().Rows(0, inputs.num_tokens);
    };
    EmbeddingDesc embedding;
    embedding.word = word_.view();
    backend_.Embed(embedding, inputs, rows(hidden_));
    const NormDesc norm{NormKind::kRmsNorm, {gain_.view(), {}, 1e-6F}};
    backend_.Gemm({query_key_value_.get(), norm, {}}, rows(hidden_), rows(qkv_));
    AttentionDesc attention;
    attention.num_heads = kHeads;
    attention.num_kv_heads = kKeyHeads;
    attention.head_dim = kHeadDim;
    attention.scale = 0.25F;
    attention.mask = AttentionMask::kCausal;
    attention.query_norm = {head_gain_.view(), {}, 1e-6F};
    attention.key_norm = attention.query_norm;
    attention.rope = {true, 1e4F};
    backend_.Attention(attention, inputs, rows(qkv_), rows(context_));
    backend_.Gemm({output_.get(), {NormKind::kNone, {}}, rows(hidden_)}, rows(context_),
                  rows(hidden_));
    backend_.Gemm({gate_up_.get(), norm, {}}, rows(hidden_), rows(inner_));
    backend_.Gemm({down_.get(), {NormKind::kNone, {}}, rows(hidden_)}, rows(inner_), rows(hidden_));
    backend_.Norm(norm, rows(hidden_), {}, {}, rows(hidden_));
    const PoolingMode mode[] = {PoolingMode::kMean};
    const TensorView pooled = pooled_.view().Rows(0, inputs.num_rows);
    backend_.Pool({mode}, inputs, rows(hidden_), pooled);
    backend_.NormalizeRows(pooled);
    backend_.FinishRows(inputs, pooled);
  }

 private:
  std::vector<float> Random(int64_t count) {
    std::normal_distribution<float> normal(0.0F, 0.2F);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = normal(random_);
    }
    return values;
  }
  Tensor Allocate(Dtype dtype, int64_t rows, int64_t cols) {
    return std::move(backend_.Allocate(dtype, rows, cols)).value();
  }
  Tensor Weight(int64_t rows, int64_t cols, Dtype dtype) {
    sources_.push_back(Random(rows * cols));
    return std::move(backend_.Upload({sources_.back().data(), Dtype::kFloat32, rows, cols}, dtype))
        .value();
  }
  std::unique_ptr<PackedWeight> Linear(const std::vector<int64_t>& outs, int64_t in,
                                       Activation activation, bool gated) {
    LinearDesc desc;
    desc.gated = gated;
    desc.activation = activation;
    std::vector<std::vector<float>> values;
    for (const int64_t out : outs) {
      values.push_back(Random(out * in));
      desc.weights.push_back({values.back().data(), Dtype::kFloat32, out, in});
    }
    return std::move(backend_.Pack(desc)).value();
  }

  Backend& backend_;
  std::mt19937 random_;
  std::vector<std::vector<float>> sources_;
  Tensor word_, gain_, head_gain_;
  std::unique_ptr<PackedWeight> query_key_value_, output_, gate_up_, down_;
  Tensor hidden_, qkv_, context_, inner_, pooled_;
};

/// A batch with room for its results.
struct Step {
  static constexpr size_t kStride = Block::kWidth * sizeof(float);

  explicit Step(const std::vector<int32_t>& lengths) : batch(lengths, Block::kWidth) {
    for (size_t i = 0; i < batch.token_ids.size(); ++i) {
      batch.token_ids[i] = static_cast<int32_t>((i * 31 + lengths.size()) % 100);
    }
    Prepare();
  }

  /// Room for the batch as it is now.
  void Prepare() {
    rows.assign(batch.ranges.size() * kStride, std::byte{0xff});  // NaN
    statuses.assign(batch.ranges.size(), RowStatus::kNotFinite);
    slot.host = batch.inputs();
    slot.rows = rows.data();
    slot.statuses = statuses.data();
  }

  /// Every second sequence gives a row per span of `length` tokens, with a separator between them.
  void CutIntoSpans(int32_t length) {
    batch.ClearRows();
    for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) {
      const int32_t first = batch.offsets[i];
      const int32_t end = batch.offsets[i + 1];
      if (i % 2 != 0) {
        batch.AddRow({first, first, end}, Block::kWidth);
      }
      for (int32_t begin = first; i % 2 == 0 && begin < end; begin += length + 1) {
        batch.AddRow({first, begin, std::min(begin + length, end)}, Block::kWidth);
      }
    }
    Prepare();
  }

  /// Each row in another format.
  void MixFormats() {
    constexpr model::RowDtype kDtypes[] = {model::RowDtype::kTanhInt8, model::RowDtype::kFloat32,
                                           model::RowDtype::kSignBitsLsbFirst,
                                           model::RowDtype::kSignBitsMsbFirst};
    for (size_t row = 0; row < batch.ranges.size(); ++row) {
      batch.dtypes[row] = kDtypes[row % 4];
      batch.dimensions[row] = Block::kWidth - static_cast<int32_t>(row % 3 * 8);
      batch.normalize[row] = row % 5 != 0;
    }
    Prepare();
  }

  std::vector<float> Floats() const {
    std::vector<float> values(rows.size() / sizeof(float));
    std::memcpy(values.data(), rows.data(), rows.size());
    return values;
  }

  TestBatch batch;
  std::vector<std::byte> rows;
  std::vector<RowStatus> statuses;
  StepSlotMemory slot;
};

void RunBlock(Backend& backend, Block& block, Step& step) {
  EXPECT_TRUE(
      backend.RunStep(step.slot, [&block](const StepInputs& inputs) { block.Forward(inputs); })
          ->Wait()
          .ok());
}

TEST_P(CpuStepTest, AllocatesNothingAfterWarmUp) {
  Block block(backend(), 600, 40, 300);
  std::vector<Step> steps;
  steps.emplace_back(std::vector<int32_t>{600});  // the warm-up: as large as a step may be
  for (int i = 0; i < 100; ++i) {
    std::vector<int32_t> lengths;
    for (int sequence = 0; sequence <= i % 40; ++sequence) {
      lengths.push_back(1 + static_cast<int32_t>(random()() % (i % 40 == 0 ? 600 : 14)));
    }
    steps.emplace_back(lengths);
    if (i % 3 == 0) {
      steps.back().CutIntoSpans(1 + i % 7);
      steps.back().MixFormats();
    }
  }
  const auto run = [&](Step& step) { RunBlock(backend(), block, step); };
  run(steps.front());
  const int64_t before = testing::AllocationCount();
  for (Step& step : steps) {
    run(step);
  }
  EXPECT_EQ(testing::AllocationCount() - before, 0);
  for (const Step& step : steps) {
    for (const RowStatus status : step.statuses) {
      EXPECT_EQ(status, RowStatus::kOk);
    }
  }
}

TEST_P(CpuStepTest, ASequenceGivesTheSameRowAloneAndInABatch) {
  Block block(backend(), 600, 40, 40);
  Step together({5, 80, 1, 33});
  Step alone({33});
  std::copy(together.batch.token_ids.end() - 33, together.batch.token_ids.end(),
            alone.batch.token_ids.begin());
  const auto run = [&](Step& step) { RunBlock(backend(), block, step); };
  run(together);
  run(alone);
  const std::vector<std::byte> last(together.rows.end() - Step::kStride, together.rows.end());
  EXPECT_EQ(last, alone.rows);
}

TEST_P(StepTest, SpansCutsAndFormatsOfOneStepDoNotDisturbEachOther) {
  Block block(backend(), 600, 40, 100);
  const auto run = [&](Step& step) { RunBlock(backend(), block, step); };
  Step floats({90, 80, 1, 33});
  floats.CutIntoSpans(6);
  run(floats);
  const std::vector<float> values = floats.Floats();
  Step mixed = floats;
  mixed.MixFormats();
  run(mixed);
  EXPECT_EQ(floats.statuses, std::vector<RowStatus>(floats.batch.ranges.size(), RowStatus::kOk));
  EXPECT_EQ(mixed.statuses, floats.statuses);
  for (size_t row = 0; row < mixed.batch.ranges.size(); ++row) {
    const auto dimensions = static_cast<size_t>(mixed.batch.dimensions[row]);
    const std::byte* written = mixed.rows.data() + row * Step::kStride;
    for (size_t i = 0; i < dimensions; ++i) {
      const float value = values[row * Block::kWidth + i];
      const int byte = std::to_integer<int>(written[i / 8]);
      switch (mixed.batch.dtypes[row]) {
        case model::RowDtype::kSignBitsLsbFirst:
          ASSERT_EQ(byte >> i % 8 & 1, value >= 0 ? 1 : 0) << row;
          break;
        case model::RowDtype::kSignBitsMsbFirst:
          ASSERT_EQ(byte >> (7 - i % 8) & 1, value >= 0 ? 1 : 0) << row;
          break;
        case model::RowDtype::kTanhInt8:
          // Rows are of unit length before they are cut, and longer when scaled after.
          ASSERT_LE(127 * std::tanh(std::abs(value)) - 1,
                    std::abs(std::to_integer<int8_t>(written[i])))
              << row;
          break;
        case model::RowDtype::kFloat32: break;
      }
    }
  }
}

TEST_P(CpuStepTest, RunStepReturnsBeforeTheStepHasEnded) {
  FinishLoading();
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_ended{false};
  StepTicket* ticket = backend().RunStep({}, [&](const StepInputs&) {
    while (!may_end.load()) {
      std::this_thread::yield();
    }
    has_ended = true;
  });
  EXPECT_FALSE(ticket->IsReady());
  may_end = true;
  EXPECT_TRUE(ticket->Wait().ok());
  EXPECT_TRUE(has_ended.load());
  EXPECT_TRUE(ticket->IsReady());
}

TEST_P(StepTest, SleepsBetweenStepsAndWakesAgain) {
  FinishLoading();
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 64, 16);
  for (int i = 0; i < 5; ++i) {
    RunStep([&] { backend().NormalizeRows(x.view()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Fetch(&x);
  double squares = 0;
  for (int64_t i = 0; i < 16; ++i) {
    squares += x.at(63, i) * x.at(63, i);
  }
  EXPECT_NEAR(squares, 1.0, 1e-5);
}

TEST_P(CpuStepTest, DescribesItself) {
  EXPECT_EQ(backend().device(), "cpu");
  EXPECT_EQ(backend().steps_under_way(), 1);
  EXPECT_EQ(backend().compute_dtype(), dtype());
  EXPECT_NE(backend().description().find(GetParam().isa), std::string::npos);
  EXPECT_NE(backend().numerics().find(DtypeName(dtype())), std::string::npos);
}

TEST_P(StepTest, LoadingRefusesWhatCannotBe) {
  EXPECT_EQ(backend().Allocate(Dtype::kFloat32, -1, 4).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().Allocate(Dtype::kFloat32, int64_t{1} << 40, int64_t{1} << 40).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().FinishLoading(0, 1, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().FinishLoading(1, 0, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().FinishLoading(4, 2, 1).code(), StatusCode::kInvalidArgument);
  const int64_t integers[] = {1, 2};
  EXPECT_EQ(backend().Upload({integers, Dtype::kInt64, 1, 2}, Dtype::kFloat32).code(),
            StatusCode::kInvalidArgument);
}

TEST_P(CpuStepTest, UploadPointsAtTheSourceWhenNothingIsConverted) {
  alignas(4) const float values[] = {1, 2, 3, 4, 5, 6};
  const HostTensor source{values, Dtype::kFloat32, 2, 3};
  Result<Tensor> same = backend().Upload(source, Dtype::kFloat32);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->view().data, values);
  Result<Tensor> converted = backend().Upload(source, Dtype::kBfloat16);
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ(converted->view().as<uint16_t>()[1], 0x4000);

  // A file may hold floats at odd addresses: those are copied.
  std::vector<std::byte> bytes(sizeof values + 1);
  std::memcpy(bytes.data() + 1, values, sizeof values);
  Result<Tensor> copied =
      backend().Upload({bytes.data() + 1, Dtype::kFloat32, 2, 3}, Dtype::kFloat32);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->view().as<float>()[5], 6.0F);
}

#ifdef BOUQUET_CUDA

/// Steps as the engine runs them on a CUDA device: padded, and captured.
class PaddedStepTest : public ::testing::Test {
 protected:
  PaddedStepTest() {
    // What is measured here is not for later starts.
    setenv("BOUQUET_CACHE_DIR", folder_.path().c_str(), /*overwrite=*/1);
  }

  struct Runner {
    explicit Runner(GraphMode graphs, bool pad_steps = true) {
      BackendOptions options;
      options.device = "cuda";
      options.graphs = graphs;
      options.pad_steps = pad_steps;
      Result<std::unique_ptr<Backend>> made = CreateBackend(options);
      status = made.status();
      if (status.ok()) {
        backend = std::move(made).value();
        block = std::make_unique<Block>(*backend, 600, 40, 300);
      }
    }
    void Run(Step& step) { RunBlock(*backend, *block, step); }
    Status status;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Block> block;
  };

  std::vector<Step> Steps() {
    std::vector<Step> steps;
    for (const std::vector<int32_t>& lengths :
         std::vector<std::vector<int32_t>>{{1},
                                           {5, 80, 1, 33},
                                           {17},
                                           {600},
                                           {64},
                                           {1, 1, 1},
                                           std::vector<int32_t>(40, 7),
                                           {300, 290}}) {
      steps.emplace_back(lengths);
    }
    return steps;
  }

  /// The same lengths where a sequence is long enough, with spans: 8 rows, 39, 86 and 300.
  static std::vector<Step> StepsWithSpans() {
    std::vector<Step> steps = {Step({64}), Step({300, 290}), Step({600}), Step({600})};
    constexpr int32_t kLengths[] = {7, 7, 6, 1};
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].CutIntoSpans(kLengths[i]);
    }
    return steps;
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(PaddedStepTest, PaddingNeverReachesARow) {
  Runner padded(GraphMode::kOff);
  if (padded.status.code() == StatusCode::kUnimplemented) {
    GTEST_SKIP() << padded.status.message();
  }
  Runner exact(GraphMode::kOff, /*pad_steps=*/false);
  std::vector<Step> steps = Steps();
  for (Step& step : StepsWithSpans()) {
    steps.push_back(step);
    steps.back().Prepare();
  }
  for (Step& step : steps) {
    Step same = step;
    same.Prepare();
    padded.block->Poison();
    padded.Run(step);
    exact.Run(same);
    ASSERT_EQ(step.statuses, std::vector<RowStatus>(step.statuses.size(), RowStatus::kOk));
    const std::vector<float> rows = step.Floats();
    const std::vector<float> expected = same.Floats();
    for (size_t i = 0; i < rows.size(); ++i) {
      // Unit rows; other sizes may take other algorithms, whose sums differ in their last bits.
      ASSERT_NEAR(rows[i], expected[i], 0.02) << step.batch.offsets.back();
    }
  }
}

TEST_F(PaddedStepTest, AReplayGivesTheBitsOfAnEagerRun) {
  Runner eager(GraphMode::kOff);
  if (eager.status.code() == StatusCode::kUnimplemented) {
    GTEST_SKIP() << eager.status.message();
  }
  Runner lazy(GraphMode::kLazy);
  Step warm_up({600});
  lazy.Run(warm_up);
  ASSERT_TRUE(lazy.backend->FinishWarmUp().ok());
  Step other({600});
  eager.Run(other);
  ASSERT_TRUE(eager.backend->FinishWarmUp().ok());
  for (int round = 0; round < 3; ++round) {  // eager, captured, replayed
    for (Step& step : Steps()) {
      eager.Run(step);
      const std::vector<std::byte> expected = step.rows;
      lazy.Run(step);
      ASSERT_EQ(step.rows, expected) << "round " << round;
    }
  }
  EXPECT_EQ(lazy.backend->graph_counts().captures, 8);  // all eight sizes differ
  EXPECT_EQ(lazy.backend->graph_counts().replays, 8);
  EXPECT_EQ(eager.backend->graph_counts().replays, 0);
}

TEST_F(PaddedStepTest, AReplayServesOtherSpansCutsAndFormatsOfItsSizes) {
  Runner eager(GraphMode::kOff);
  if (eager.status.code() == StatusCode::kUnimplemented) {
    GTEST_SKIP() << eager.status.message();
  }
  Runner lazy(GraphMode::kLazy);
  for (Runner* runner : {&eager, &lazy}) {
    Step warm_up({600});
    runner->Run(warm_up);
    ASSERT_TRUE(runner->backend->FinishWarmUp().ok());
  }
  for (int round = 0; round < 4; ++round) {  // eager, captured, replayed twice
    for (Step& step : StepsWithSpans()) {
      if (round % 2 == 1) {
        step.MixFormats();
      }
      if (round == 3) {
        std::reverse(step.batch.dtypes.begin(), step.batch.dtypes.end());
        step.batch.dimensions.assign(step.batch.dimensions.size(), 24);
        step.Prepare();
      }
      eager.Run(step);
      const std::vector<std::byte> expected = step.rows;
      lazy.Run(step);
      ASSERT_EQ(step.rows, expected) << "round " << round;
    }
  }
  // The spans of a step are sizes of their own only where there are more rows than sequences.
  EXPECT_EQ(lazy.backend->graph_counts().captures, 4);
  EXPECT_EQ(lazy.backend->graph_counts().replays, 8);
}

#endif

TEST(FactoryTest, RefusesWhatDoesNotExist) {
  EXPECT_EQ(CreateBackend({.device = "tpu"}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateBackend({.device = "cudax"}).code(), StatusCode::kInvalidArgument);
#ifndef BOUQUET_CUDA
  const Status without_cuda = CreateBackend({.device = "cuda:0"}).status();
  EXPECT_EQ(without_cuda.code(), StatusCode::kUnimplemented);
  EXPECT_NE(without_cuda.message().find("./dev build cuda"), std::string::npos);
#endif
  EXPECT_EQ(CreateBackend({.device = "cpu", .compute_dtype = Dtype::kFloat16}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateBackend({.threads = -1}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateBackend({.isa = "sse9"}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(CreateBackend({.device = "auto"}).ok());
}

TEST(FactoryTest, PinsThreadsOnlyWhenAsked) {
  EXPECT_NE(
      CreateBackend({.threads = 1, .pin_threads = true}).value()->description().find("pinned"),
      std::string::npos);
  EXPECT_EQ(CreateBackend({.threads = 1}).value()->description().find("pinned"), std::string::npos);
}

TEST(FactoryTest, PinningNeedsAProcessorForEachThread) {
  const Status status = CreateBackend({.threads = 1024, .pin_threads = true}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "threads");
  EXPECT_NE(status.message().find(": 1024"), std::string::npos);
}

TEST(FactoryTest, PinningIsOfACpu) {
  for (const char* device : {"cuda", "cuda:0"}) {
    const Status status = CreateBackend({.device = device, .pin_threads = true}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "pin_threads");
    EXPECT_NE(status.message().find(device), std::string::npos);
  }
}

}  // namespace
}  // namespace bouquet::rose
