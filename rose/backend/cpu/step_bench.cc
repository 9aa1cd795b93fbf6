// What does a whole forward pass of MiniLM's shape (6 layers, 384 wide, 12 heads of 32, 1536 inner)
// cost, and how far is it from the machine's peak? Random weights; arguments: sequences, tokens of
// each, threads. "peak" is the share of one core's measured multiply-add rate times threads by wall
// time, "busy" by the processor time of all threads, which neighbours on the machine disturb less.

#include <time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "rose/backend/cpu/peak.h"
#include "rose/backend/factory.h"

namespace bouquet::rose::cpu {
namespace {

constexpr int64_t kWidth = 384;
constexpr int64_t kInner = 1536;
constexpr int32_t kHeads = 12;
constexpr int kLayers = 6;
constexpr int64_t kVocabulary = 30522;

/// What a step may reach: of the product's instructions, which for bfloat16 without an instruction
/// of its own are those of float32.
double Peak(const std::string& isa_name, Dtype dtype) {
  const Isa isa = ChooseIsa(isa_name).value();
  const Dtype multiplied = isa == Isa::kAvx512Bf16 ? dtype : Dtype::kFloat32;
  static std::map<std::pair<Isa, Dtype>, double> peaks;
  double& peak = peaks[{isa, multiplied}];
  if (peak == 0) {
    peak = MeasurePeakFlops(isa, multiplied);
  }
  return peak;
}

double ProcessSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// MiniLM with random weights, straight on a backend.
class Model {
 public:
  Model(const std::string& isa, Dtype dtype, int32_t threads, int32_t max_tokens,
        int32_t max_sequences) {
    BackendOptions options;
    options.isa = isa;
    options.compute_dtype = dtype;
    options.threads = threads;
    backend_ = std::move(CreateBackend(options)).value();
    word_ = Table(kVocabulary);
    position_ = Table(512);
    gain_ = Upload(1, kWidth, 1.0F, Dtype::kFloat32);
    bias_ = Upload(1, kWidth, 0.0F, Dtype::kFloat32);
    for (int layer = 0; layer < kLayers; ++layer) {
      layers_.push_back(
          {Linear(kWidth, 3 * kWidth, Activation::kNone), Linear(kWidth, kWidth, Activation::kNone),
           Linear(kWidth, kInner, Activation::kGelu), Linear(kInner, kWidth, Activation::kNone)});
    }
    CHECK(backend_->FinishLoading(max_tokens, max_sequences, max_sequences).ok());
    hidden_ = Activations(max_tokens, kWidth);
    other_ = Activations(max_tokens, kWidth);
    context_ = Activations(max_tokens, kWidth);
    qkv_ = Activations(max_tokens, 3 * kWidth);
    inner_ = Activations(max_tokens, kInner);
    pooled_ = std::move(backend_->Allocate(Dtype::kFloat32, max_sequences, kWidth)).value();
    rows_.resize(static_cast<size_t>(max_sequences * kWidth) * sizeof(float));
    statuses_.resize(static_cast<size_t>(max_sequences));
  }

  void Step(const StepInputs& inputs) {
    StepSlotMemory slot;
    slot.host = inputs;
    slot.rows = rows_.data();
    slot.statuses = statuses_.data();
    CHECK(backend_->RunStep(slot, [this](const StepInputs& in) { Forward(in); })->Wait().ok());
  }

 private:
  struct Layer {
    std::unique_ptr<PackedWeight> query_key_value;
    std::unique_ptr<PackedWeight> output;
    std::unique_ptr<PackedWeight> up;
    std::unique_ptr<PackedWeight> down;
  };

  Tensor Upload(int64_t rows, int64_t cols, float value, Dtype dtype) {
    sources_.emplace_back(static_cast<size_t>(rows * cols), value);
    return std::move(backend_->Upload({sources_.back().data(), Dtype::kFloat32, rows, cols}, dtype))
        .value();
  }
  Tensor Table(int64_t rows) { return Upload(rows, kWidth, 0.01F, backend_->compute_dtype()); }
  Tensor Activations(int64_t rows, int64_t cols) {
    return std::move(backend_->Allocate(backend_->compute_dtype(), rows, cols)).value();
  }
  std::unique_ptr<PackedWeight> Linear(int64_t in, int64_t out, Activation activation) {
    std::normal_distribution<float> normal(0.0F, 0.05F);
    std::vector<float> weight(static_cast<size_t>(in * out));
    for (float& value : weight) {
      value = normal(random_);
    }
    const std::vector<float> bias(static_cast<size_t>(out), 0.1F);
    LinearDesc desc;
    desc.weights = {{weight.data(), Dtype::kFloat32, out, in}};
    desc.biases = {{bias.data(), Dtype::kFloat32, 1, out}};
    desc.activation = activation;
    return std::move(backend_->Pack(desc)).value();
  }

  void Forward(const StepInputs& in) {
    const auto rows = [&](const Tensor& tensor) { return tensor.view().Rows(0, in.num_tokens); };
    const NormWeights norm{gain_.view(), bias_.view(), 1e-12F};
    const NormDesc layer_norm{NormKind::kLayerNorm, norm};
    backend_->Embed({word_.view(), position_.view(), {}, 0, NormKind::kLayerNorm, norm}, in,
                    rows(hidden_));
    AttentionDesc attention;
    attention.num_heads = kHeads;
    attention.num_kv_heads = kHeads;
    attention.head_dim = kWidth / kHeads;
    attention.scale = 0.17677669F;
    for (const Layer& layer : layers_) {
      backend_->Gemm({layer.query_key_value.get(), {NormKind::kNone, {}}, {}}, rows(hidden_),
                     rows(qkv_));
      backend_->Attention(attention, in, rows(qkv_), rows(context_));
      backend_->Gemm({layer.output.get(), {NormKind::kNone, {}}, rows(hidden_)}, rows(context_),
                     rows(other_));
      backend_->Norm(layer_norm, rows(other_), {}, {}, rows(hidden_));
      backend_->Gemm({layer.up.get(), {NormKind::kNone, {}}, {}}, rows(hidden_), rows(inner_));
      backend_->Gemm({layer.down.get(), {NormKind::kNone, {}}, rows(hidden_)}, rows(inner_),
                     rows(other_));
      backend_->Norm(layer_norm, rows(other_), {}, {}, rows(hidden_));
    }
    const PoolingMode mean[] = {PoolingMode::kMean};
    const TensorView pooled = pooled_.view().Rows(0, in.num_sequences);
    backend_->Pool({mean}, in, rows(hidden_), pooled);
    backend_->FinishRows(in, pooled);
  }

  std::mt19937 random_{1};
  std::vector<std::vector<float>> sources_;
  std::unique_ptr<Backend> backend_;
  Tensor word_, position_, gain_, bias_;
  std::vector<Layer> layers_;
  Tensor hidden_, other_, context_, qkv_, inner_, pooled_;
  std::vector<std::byte> rows_;
  std::vector<RowStatus> statuses_;
};

/// `isa` is empty for the best that there is; a named one is what a lesser processor would run.
void Step(benchmark::State& state, const std::string& isa, Dtype dtype) {
  if (!ChooseIsa(isa).ok()) {
    state.SkipWithError("this processor lacks it");
    return;
  }
  const auto sequences = static_cast<int32_t>(state.range(0));
  const auto length = static_cast<int32_t>(state.range(1));
  const auto threads = static_cast<int32_t>(state.range(2));
  const int32_t tokens = sequences * length;
  Model model(isa, dtype, threads, tokens, sequences);
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  std::vector<int32_t> positions(static_cast<size_t>(tokens));
  std::vector<int32_t> offsets{0};
  for (int32_t token = 0; token < tokens; ++token) {
    ids[static_cast<size_t>(token)] = static_cast<int32_t>(token * 7919LL % kVocabulary);
    positions[static_cast<size_t>(token)] = token % length;
  }
  for (int32_t sequence = 1; sequence <= sequences; ++sequence) {
    offsets.push_back(sequence * length);
  }
  const std::vector<int32_t> dimensions(static_cast<size_t>(sequences), kWidth);
  const std::vector<uint8_t> normalize(static_cast<size_t>(sequences), 1);
  const std::vector<model::RowDtype> dtypes(static_cast<size_t>(sequences));
  std::vector<PoolingRange> ranges;
  for (int32_t sequence = 0; sequence < sequences; ++sequence) {
    ranges.push_back({sequence * length, sequence * length, (sequence + 1) * length});
  }
  StepInputs inputs;
  inputs.num_tokens = tokens;
  inputs.num_sequences = sequences;
  inputs.num_rows = sequences;
  inputs.longest_sequence = length;
  inputs.token_ids = ids.data();
  inputs.positions = positions.data();
  inputs.sequence_offsets = offsets.data();
  inputs.pooling_ranges = ranges.data();
  inputs.dimensions = dimensions.data();
  inputs.row_dtypes = dtypes.data();
  inputs.normalize = normalize.data();
  model.Step(inputs);
  const double cpu_before = ProcessSeconds();
  for (auto _ : state) {
    model.Step(inputs);
  }
  const double cpu_seconds = ProcessSeconds() - cpu_before;
  const double layer_flops = 2.0 * kWidth * (4.0 * kWidth + 2.0 * kInner) + 4.0 * length * kWidth;
  const double flops = layer_flops * kLayers * tokens;
  state.counters["peak"] = benchmark::Counter(flops / (Peak(isa, dtype) * threads),
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["busy"] =
      flops * static_cast<double>(state.iterations()) / cpu_seconds / Peak(isa, dtype);
  state.counters["cpu_ms"] = 1e3 * cpu_seconds / static_cast<double>(state.iterations());
  state.counters["seq/s"] =
      benchmark::Counter(sequences, benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"sequences", "tokens", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int64_t threads : {1, 2}) {
    for (const int64_t tokens : {8, 16, 32, 128, 256, 512}) {
      bench->Args({1, tokens, threads});
    }
    bench->Args({32, 16, threads})->Args({4, 256, threads});
  }
}

BENCHMARK_CAPTURE(Step, f32, "", Dtype::kFloat32)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, bf16, "", Dtype::kBfloat16)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, f32_avx512, "avx512", Dtype::kFloat32)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, bf16_avx512, "avx512", Dtype::kBfloat16)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, f32_avx2, "avx2", Dtype::kFloat32)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, bf16_avx2, "avx2", Dtype::kBfloat16)->Apply(Shapes);
BENCHMARK_CAPTURE(Step, f32_plain, "plain", Dtype::kFloat32)->Apply(Shapes);

}  // namespace
}  // namespace bouquet::rose::cpu
