#include "rose/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "base/log.h"
#include "rose/backend/factory.h"
#include "rose/heads/dense_head.h"
#include "rose/models/model.h"
#include "rose/step_grid.h"
#include "rose/step_slot.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {
namespace {

// A step this large takes seconds on a CPU; a longer input is refused at admission with the limit.
constexpr int32_t kMaxStepTokens = 65'536;
constexpr int32_t kDefaultStepTokens = 1024;
constexpr int32_t kMaxStepSequences = 65'536;
// A document of the longest step may be cut into spans of as few tokens on average, which is a
// sentence. Each row that may be costs two of the model's width on the device, and one per step
// under way on the host: with 32,768 tokens and a width of 1024, 2,048 rows and 8 MiB each.
constexpr int32_t kTokensPerSpan = 16;

Result<std::optional<Dtype>> ComputeDtype(const std::string& name) {
  if (name == "auto") {
    return std::optional<Dtype>();
  }
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16}) {
    if (name == DtypeName(dtype)) {
      return std::optional<Dtype>(dtype);
    }
  }
  return InvalidArgument(fmt::format("dtype must be auto, float32 or bfloat16, not {}", name),
                         "dtype");
}

Result<GraphMode> GraphModeNamed(const std::string& name) {
  if (name == "lazy") {
    return GraphMode::kLazy;
  }
  if (name == "startup") {
    return GraphMode::kStartup;
  }
  if (name == "off") {
    return GraphMode::kOff;
  }
  return InvalidArgument(fmt::format("graphs must be lazy, startup or off, not {}", name),
                         "graphs");
}

Result<std::unique_ptr<Backend>> MakeBackend(const EngineOptions& options) {
  BackendOptions backend;
  backend.device = options.device;
  backend.threads = options.threads;
  backend.pin_threads = options.pin_threads;
  backend.attention = options.attention;
  backend.memory_fraction = options.memory_fraction;
  ASSIGN_OR_RETURN(backend.compute_dtype, ComputeDtype(options.dtype));
  ASSIGN_OR_RETURN(backend.graphs, GraphModeNamed(options.graphs));
  return CreateBackend(backend);
}

bool PoolsByMeanAlone(const model::Pipeline& pipeline) {
  return std::ranges::all_of(pipeline.modules, [](const model::Module& module) {
    const auto* pooling = std::get_if<model::PoolingModule>(&module);
    return pooling == nullptr || pooling->modes == std::vector{model::PoolingMode::kMean};
  });
}

Result<BatchLimits> LimitsOf(const model::ModelFolder& folder, const EngineOptions& options) {
  if (options.max_step_tokens < 0 || options.max_step_tokens > kMaxStepTokens) {
    return InvalidArgument(fmt::format("max_step_tokens must be 0..{}, not {}", kMaxStepTokens,
                                       options.max_step_tokens),
                           "max_step_tokens");
  }
  if (options.max_step_sequences < 1 || options.max_step_sequences > kMaxStepSequences) {
    return InvalidArgument(fmt::format("max_step_sequences must be 1..{}, not {}",
                                       kMaxStepSequences, options.max_step_sequences),
                           "max_step_sequences");
  }
  const int32_t longest = std::min(folder.max_input_tokens, kMaxStepTokens);
  BatchLimits limits;
  limits.vocabulary_rows = folder.traits.vocabulary_rows;
  limits.token_types = std::max(folder.traits.token_types, 1);
  limits.max_positions = folder.traits.max_positions;
  limits.max_tokens =
      options.max_step_tokens > 0 ? options.max_step_tokens : std::max(longest, kDefaultStepTokens);
  limits.max_sequences = std::min(options.max_step_sequences, limits.max_tokens);
  limits.width = folder.pipeline.width;
  limits.takes_spans = PoolsByMeanAlone(folder.pipeline);
  limits.max_rows = limits.max_sequences;
  if (limits.takes_spans) {
    limits.max_rows = std::max(limits.max_rows, limits.max_tokens / kTokensPerSpan);
  }
  return limits;
}

}  // namespace

// Members in the order in which they depend on each other: the last is destroyed first.
class Engine::Impl {
 public:
  static Result<std::unique_ptr<Impl>> Load(const model::ModelFolder& folder,
                                            const EngineOptions& options);
  LazyTensor Step(const Batch& batch);
  const EngineInfo& info() const { return info_; }
  GraphCounts graph_counts() const { return backend_->graph_counts(); }
  int32_t PaddedTokens(int32_t num_tokens, int32_t num_sequences) const {
    return backend_->LargestStep(num_tokens, num_sequences, num_sequences).num_tokens;
  }

 private:
  Status LoadParts(const model::ModelFolder& folder);
  Status MakeRing();
  Status WarmUp();
  Status CaptureGrid(int32_t max_length);
  void Describe();

  EngineInfo info_;
  std::optional<WeightSet> weights_;  // mapped files; a backend may read from them for good
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DenseHead> head_;
  StepSlot::Forward forward_;
  std::vector<std::unique_ptr<StepSlot>> ring_;
  size_t next_slot_ = 0;
};

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Load(const model::ModelFolder& folder,
                                                         const EngineOptions& options) {
  auto impl = std::make_unique<Impl>();
  ASSIGN_OR_RETURN(impl->info_.limits, LimitsOf(folder, options));
  ASSIGN_OR_RETURN(impl->backend_, MakeBackend(options));
  RETURN_IF_ERROR(impl->LoadParts(folder));
  impl->Describe();
  RETURN_IF_ERROR(impl->MakeRing());
  RETURN_IF_ERROR(impl->WarmUp());
  RETURN_IF_ERROR(impl->backend_->FinishWarmUp());
  if (options.graphs == "startup" && impl->backend_->captures_steps()) {
    RETURN_IF_ERROR(impl->CaptureGrid(folder.max_input_tokens));
  }
  impl->weights_->ReleasePages();
  return impl;
}

Status Engine::Impl::LoadParts(const model::ModelFolder& folder) {
  const BatchLimits& limits = info_.limits;
  ASSIGN_OR_RETURN(weights_, WeightSet::Open(folder.weight_files));
  const StepSizes largest =
      backend_->LargestStep(limits.max_tokens, limits.max_sequences, limits.max_rows);
  ASSIGN_OR_RETURN(model_, LoadModel(folder.traits, *weights_, largest.num_tokens, *backend_));
  info_.weight_bytes = weights_->TakenBytes();
  ASSIGN_OR_RETURN(head_, DenseHead::Load(folder.pipeline, folder.traits.hidden_size,
                                          largest.num_rows, *backend_));
  return backend_->FinishLoading(limits.max_tokens, limits.max_sequences, limits.max_rows);
}

void Engine::Impl::Describe() {
  info_.device = std::string(backend_->device());
  info_.device_description = backend_->description();
  info_.dtype = std::string(DtypeName(backend_->compute_dtype()));
  info_.numerics_fingerprint =
      fmt::format("bouquet {}, {}, {}", BOUQUET_VERSION, info_.dtype, backend_->numerics());
  info_.steps_under_way = backend_->steps_under_way();
}

Status Engine::Impl::MakeRing() {
  forward_ = [this](const StepInputs& inputs) {
    const TensorView hidden = model_->Forward(inputs, *backend_);
    head_->Apply(hidden, inputs, *backend_);
  };
  for (int32_t i = 0; i < info_.steps_under_way; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<StepSlot> slot,
                     StepSlot::Make(i, info_.limits, forward_, *backend_));
    ring_.push_back(std::move(slot));
  }
  return {};
}

// One token is enough to run every op once, and small enough not to show in the time to ready.
Status Engine::Impl::WarmUp() {
  Batch batch;
  batch.Add({0}, {}, 0, {});
  return Step(batch).Wait().status();
}

Status Engine::Impl::CaptureGrid(int32_t max_length) {
  const BatchLimits& limits = info_.limits;
  const std::vector<StepSizes> grid = StartupGrid(limits.max_tokens, limits.max_sequences,
                                                  std::min(max_length, limits.max_positions));
  constexpr size_t kProgressLines = 4;
  for (size_t i = 0; i < grid.size(); ++i) {
    if (i % (grid.size() / kProgressLines + 1) == 0) {
      LogInfo("capturing steps: {} of {}", i, grid.size());
    }
    Batch batch;
    const std::vector<int32_t> ids(static_cast<size_t>(grid[i].num_tokens / grid[i].num_sequences),
                                   0);
    for (int32_t sequence = 0; sequence < grid[i].num_sequences; ++sequence) {
      batch.Add(ids, {}, 0, {});
    }
    RETURN_IF_ERROR(Step(batch).Wait().status());
  }
  return {};
}

LazyTensor Engine::Impl::Step(const Batch& batch) {
  if (Status invalid = ValidateBatch(batch, info_.limits); !invalid.ok()) {
    return LazyTensor(std::move(invalid));
  }
  StepSlot& slot = *ring_[next_slot_];
  next_slot_ = (next_slot_ + 1) % ring_.size();
  slot.Fill(batch);
  slot.Start(*backend_);
  return LazyTensor(&slot);
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Load(const model::ModelFolder& folder,
                                             const EngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Load(folder, options));
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

LazyTensor Engine::Step(const Batch& batch) { return impl_->Step(batch); }

const EngineInfo& Engine::info() const { return impl_->info(); }

GraphCounts Engine::graph_counts() const { return impl_->graph_counts(); }

int32_t Engine::PaddedTokens(int32_t num_tokens, int32_t num_sequences) const {
  return impl_->PaddedTokens(num_tokens, num_sequences);
}

}  // namespace bouquet::rose
