#include "rose/backend/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "rose/backend/cpu/attention_block.h"

namespace bouquet::rose::cpu {
namespace {

constexpr int64_t kTokensPerRotateChunk = 16;
constexpr int32_t kMaxTileRows = 8;
constexpr int32_t kShortestRun = 16;
constexpr int32_t kTasksPerWorker = 4;

int64_t PaddedHeadDim(int64_t head_dim) {
  return (head_dim + kHeadDimMultiple - 1) / kHeadDimMultiple * kHeadDimMultiple;
}

int64_t RoundToLine(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

void AttentionRunner::Prepare(int32_t workers, int32_t max_tokens, int32_t max_sequences) {
  workers_.resize(static_cast<size_t>(workers));
  max_tokens_ = max_tokens;
  max_sequences_ = max_sequences;
}

void AttentionRunner::NeedScratch(int32_t head_dim, int32_t group) {
  const int32_t states = std::max(kQueryBlock, group);
  if (head_dim <= scratch_head_dim_ && states <= scratch_states_) {
    return;
  }
  scratch_head_dim_ = std::max(head_dim, scratch_head_dim_);
  scratch_states_ = std::max(states, scratch_states_);
  const int64_t padded = PaddedHeadDim(scratch_head_dim_);
  const int64_t keys = RoundToLine(scratch_head_dim_ * kKeyStride);
  const int64_t values = kKeyBlock * padded;
  const int64_t queries = RoundToLine(int64_t{kMaxTileRows} * scratch_head_dim_);
  const int64_t scores = RoundToLine(kMaxTileRows * kKeyStride);
  const int64_t sums = scratch_states_ * padded;
  const int64_t per_state = RoundToLine(scratch_states_);
  for (Worker& worker : workers_) {
    worker.memory = MakeAlignedArray<float>(
        static_cast<size_t>(keys + values + queries + scores + sums + 2 * per_state));
    CHECK(worker.memory != nullptr);
    float* next = worker.memory.get();
    const auto take = [&next](int64_t count) { return std::exchange(next, next + count); };
    worker.scratch = {.keys = take(keys),
                      .values = take(values),
                      .queries = take(queries),
                      .scores = take(scores),
                      .sums = take(sums),
                      .maxima = take(per_state),
                      .weights = take(per_state)};
    worker.packed = {};
  }
}

const AttentionRunner::RotaryTable& AttentionRunner::TableFor(const AttentionDesc& desc,
                                                              int32_t positions) {
  RotaryTable* found = nullptr;
  for (RotaryTable& table : tables_) {
    if (table.theta == desc.rope.theta && table.head_dim == desc.head_dim) {
      found = &table;
    }
  }
  if (found == nullptr) {
    found = &tables_.emplace_back();
    found->theta = desc.rope.theta;
    found->head_dim = desc.head_dim;
  }
  const int32_t wanted = std::max(positions, max_tokens_);
  if (found->positions >= positions) {
    return *found;
  }
  const int64_t half = desc.head_dim / 2;
  found->cosines.resize(static_cast<size_t>(wanted * half));
  found->sines.resize(static_cast<size_t>(wanted * half));
  for (int64_t i = 0; i < half; ++i) {
    // The angle is a float32 product of float32 factors, as in the reference implementations that
    // models were trained with; only its cosine is taken more exactly.
    const double exponent = 2.0 * static_cast<double>(i) / desc.head_dim;
    const auto frequency =
        static_cast<float>(1.0 / std::pow(static_cast<double>(desc.rope.theta), exponent));
    for (int64_t position = found->positions; position < wanted; ++position) {
      const double angle = static_cast<float>(position) * frequency;
      const auto index = static_cast<size_t>(position * half + i);
      found->cosines[index] = static_cast<float>(std::cos(angle));
      found->sines[index] = static_cast<float>(std::sin(angle));
    }
  }
  found->positions = wanted;
  return *found;
}

void AttentionRunner::Rotate(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                             const Kernels& kernels, WorkerPool& pool) {
  if (!desc.rope.enabled && desc.query_norm.empty() && desc.key_norm.empty()) {
    return;
  }
  RotateArgs args{.qkv = qkv.data,
                  .qkv_stride = qkv.row_stride,
                  .num_heads = desc.num_heads,
                  .num_kv_heads = desc.num_kv_heads,
                  .head_dim = desc.head_dim,
                  .query_gain = desc.query_norm.gain.as<const float>(),
                  .key_gain = desc.key_norm.gain.as<const float>(),
                  .query_epsilon = desc.query_norm.epsilon,
                  .key_epsilon = desc.key_norm.epsilon,
                  .positions = inputs.positions};
  if (desc.rope.enabled) {
    CHECK_EQ(desc.head_dim % 2, 0);
    int32_t last = 0;
    for (int32_t token = 0; token < inputs.num_tokens; ++token) {
      CHECK_GE(inputs.positions[token], 0);
      last = std::max(last, inputs.positions[token]);
    }
    const RotaryTable& table = TableFor(desc, last + 1);
    args.cosines = table.cosines.data();
    args.sines = table.sines.data();
  }
  const int64_t tokens = inputs.num_tokens;
  const int64_t chunks = (tokens + kTokensPerRotateChunk - 1) / kTokensPerRotateChunk;
  pool.ForEachChunk(chunks, [&](int64_t chunk, int32_t) {
    const int64_t begin = chunk * kTokensPerRotateChunk;
    kernels.rotate(args, begin, std::min(begin + kTokensPerRotateChunk, tokens));
  });
}

void AttentionRunner::CutIntoTasks(const AttentionDesc& desc, const StepInputs& inputs,
                                   int32_t workers) {
  const int32_t group = desc.num_heads / desc.num_kv_heads;
  const int32_t longest_run = std::max(1, kQueryBlock / group);
  const int32_t shortest_run = std::min(kShortestRun, longest_run);
  tasks_.clear();
  tasks_.reserve(static_cast<size_t>(desc.num_kv_heads) *
                 static_cast<size_t>(max_sequences_ + max_tokens_ / shortest_run));
  // Heads are cut no finer than balance needs: each run packs its keys again unless the same worker
  // goes on with the next run of the same head.
  const int64_t pairs = int64_t{inputs.num_sequences} * desc.num_kv_heads;
  const bool enough_heads = pairs >= kTasksPerWorker * workers;
  for (int32_t sequence = 0; sequence < inputs.num_sequences; ++sequence) {
    const int32_t length =
        inputs.sequence_offsets[sequence + 1] - inputs.sequence_offsets[sequence];
    const int32_t share = (length + workers - 1) / workers;
    const int32_t run = enough_heads ? longest_run : std::clamp(share, shortest_run, longest_run);
    for (int32_t kv_head = 0; kv_head < desc.num_kv_heads; ++kv_head) {
      for (int32_t query = 0; query < length; query += run) {
        tasks_.push_back({sequence, kv_head, query, std::min(query + run, length)});
      }
    }
  }
}

void AttentionRunner::Run(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                          TensorView out, const Kernels& kernels, WorkerPool& pool) {
  CHECK_GT(desc.num_kv_heads, 0);
  CHECK_EQ(desc.num_heads % desc.num_kv_heads, 0);
  CHECK_EQ(qkv.rows, inputs.num_tokens);
  CHECK_EQ(qkv.cols, (desc.num_heads + 2 * desc.num_kv_heads) * int64_t{desc.head_dim});
  CHECK_EQ(out.rows, inputs.num_tokens);
  CHECK_EQ(out.cols, desc.num_heads * int64_t{desc.head_dim});
  const float* relative_bias = desc.relative_bias.AtZero(desc.num_heads);
  NeedScratch(desc.head_dim, desc.num_heads / desc.num_kv_heads);
  Rotate(desc, inputs, qkv, kernels, pool);
  CutIntoTasks(desc, inputs, pool.size());
  ++op_;
  const auto element = static_cast<int64_t>(DtypeBytes(qkv.dtype));
  pool.ForEachChunk(static_cast<int64_t>(tasks_.size()), [&](int64_t chunk, int32_t worker_index) {
    const Task& task = tasks_[static_cast<size_t>(chunk)];
    Worker& worker = workers_[static_cast<size_t>(worker_index)];
    const int64_t first = inputs.sequence_offsets[task.sequence];
    const auto length = static_cast<int32_t>(inputs.sequence_offsets[task.sequence + 1] - first);
    const PackedKeys wanted{op_, task.sequence, task.kv_head};
    const bool is_packed = length <= kKeyBlock && worker.packed.op == wanted.op &&
                           worker.packed.sequence == wanted.sequence &&
                           worker.packed.kv_head == wanted.kv_head;
    kernels.attention({.qkv = qkv.as<std::byte>() + first * qkv.row_stride * element,
                       .qkv_stride = qkv.row_stride,
                       .out = out.as<std::byte>() + first * out.row_stride * element,
                       .out_stride = out.row_stride,
                       .length = length,
                       .num_heads = desc.num_heads,
                       .num_kv_heads = desc.num_kv_heads,
                       .head_dim = desc.head_dim,
                       .kv_head = task.kv_head,
                       .query_begin = task.query_begin,
                       .query_end = task.query_end,
                       .scale = desc.scale,
                       .causal = desc.mask == AttentionMask::kCausal,
                       .window = desc.window,
                       .relative_bias = relative_bias,
                       .relative_bias_stride = desc.relative_bias.table.row_stride,
                       .max_distance = desc.relative_bias.max_distance(),
                       .keys_are_packed = is_packed,
                       .scratch = worker.scratch});
    worker.packed = wanted;
  });
}

}  // namespace bouquet::rose::cpu
