// How long does each attention kernel take, and which one wins a cell? The chooser's table is set
// from this.
//
//   ragged_attention_bench [SUBSTRING]    only cells whose name contains it
//
// One line per cell: µs per launch for every kernel that serves it (the median of nine replays of a
// graph of 4 to 40 launches, after two for warming up), and TFLOP/s of the fastest, counting
// 4 · n² · head_dim a head (half under a causal mask, the window's share under a window). `plan` is
// the planner alone, with its zeros for 64 padded rows.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rose/backend/cuda/attention/attention_test_batch.h"
#include "rose/backend/cuda/attention/flashinfer_fa2.h"
#include "rose/backend/cuda/attention/flashinfer_fa3.h"
#include "rose/backend/cuda/attention/own_attention.h"
#include "rose/backend/cuda/attention/plan_kernel.h"
#include "rose/backend/cuda/attention/plan_lists.h"
#include "rose/backend/cuda/attention/ragged_attention.h"

namespace bouquet::rose::cuda {
namespace {

struct Cell {
  std::string name;
  std::vector<int32_t> lengths;
  AttentionShape shape;
};

void CheckCuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    fmt::print(stderr, "{}: {}\n", what, cudaGetErrorString(error));
    std::exit(1);
  }
}

/// µs per call of `launch`, which is captured `count` times.
double MedianMicroseconds(const std::function<void(cudaStream_t)>& launch, int count,
                          cudaStream_t stream) {
  launch(stream);  // loads the module
  CheckCuda(cudaStreamSynchronize(stream), "first launch");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < count; ++i) {
    launch(stream);
  }
  CheckCuda(cudaStreamEndCapture(stream, &graph), "capture");
  CheckCuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  CheckCuda(cudaEventCreate(&begin), "event");
  CheckCuda(cudaEventCreate(&end), "event");
  std::vector<double> microseconds;
  constexpr int kWarmUps = 2;
  constexpr int kReplays = 9;
  for (int i = 0; i < kWarmUps + kReplays; ++i) {
    CheckCuda(cudaEventRecord(begin, stream), "record");
    CheckCuda(cudaGraphLaunch(replay, stream), "replay");
    CheckCuda(cudaEventRecord(end, stream), "record");
    CheckCuda(cudaEventSynchronize(end), "replay");
    float milliseconds = 0;
    CheckCuda(cudaEventElapsedTime(&milliseconds, begin, end), "time");
    if (i >= kWarmUps) {
      microseconds.push_back(static_cast<double>(milliseconds) * 1e3 / count);
    }
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  std::sort(microseconds.begin(), microseconds.end());
  return microseconds[microseconds.size() / 2];
}

double FloatingPointOperations(const Cell& cell) {
  double pairs = 0;
  for (const double n : cell.lengths) {
    const double window = cell.shape.window > 0 ? cell.shape.window : n;
    pairs += cell.shape.mask == AttentionMask::kCausal ? n * std::min(n / 2, window)
                                                       : n * std::min(n, 2 * window + 1);
  }
  return 4 * pairs * cell.shape.head_dim * cell.shape.num_heads;
}

struct Candidate {
  std::string name;
  std::function<cudaError_t(cudaStream_t)> launch;
};

std::vector<Candidate> Candidates(const AttentionShape& shape, const AttentionSizes& sizes,
                                  const AttentionArgs& args, const AttentionPlan& plan) {
  std::vector<Candidate> candidates;
  candidates.push_back({"own", [=](cudaStream_t stream) {
                          return LaunchTensorCoreAttention(shape, sizes, args, plan.own, stream);
                        }});
  if (shape.head_dim == 32 || shape.relative_bias) {
    return candidates;
  }
  for (const int32_t rows : {64, 128}) {
    candidates.push_back({fmt::format("fa2_{}", rows), [=](cudaStream_t stream) {
                            return LaunchFa2(shape, args, plan, rows, stream);
                          }});
  }
#if BOUQUET_FA3
  if (shape.window == 0) {
    for (const bool persistent : {false, true}) {
      candidates.push_back({persistent ? "fa3" : "fa3_per_tile", [=](cudaStream_t stream) {
                              return LaunchFa3(shape, sizes, args, plan.fa3, persistent, stream);
                            }});
    }
  }
#endif
  return candidates;
}

/// Random numbers are slow to make, so a million of them are repeated.
std::vector<Bits> RepeatedRows(const AttentionShape& shape, const AttentionBatch& batch) {
  static const std::vector<Bits> pool = RandomRows({1, 1, 1}, AttentionBatch::Of({349'526}), 0, 1);
  std::vector<Bits> rows(static_cast<size_t>(batch.num_tokens() * RowWidth(shape)));
  for (size_t i = 0; i < rows.size(); i += pool.size()) {
    std::copy_n(pool.begin(), std::min(pool.size(), rows.size() - i),
                rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return rows;
}

void Measure(const Cell& cell, const PlanLists& lists, RaggedAttention& chosen,
             cudaStream_t stream) {
  const AttentionBatch batch = AttentionBatch::Of(cell.lengths);
  const DeviceArray<Bits> rows(RepeatedRows(cell.shape, batch));
  const int64_t out_width = static_cast<int64_t>(cell.shape.num_heads) * cell.shape.head_dim;
  const DeviceArray<Bits> out(static_cast<size_t>((batch.padded.num_tokens + 64) * out_width));
  const DeviceArray<int32_t> offsets(batch.offsets());
  const DeviceArray<float> biases(DistanceBiases(cell.shape));
  const AttentionArgs args =
      MakeArgs(cell.shape, rows.data(), out.data(), offsets.data(), biases.data());
  const AttentionPlan plan = lists.For(cell.shape, batch.padded, AttentionFamily::kAuto);
  const PlanArgs plan_args{.sequence_offsets = offsets.data(),
                           .num_sequences = batch.padded.num_sequences,
                           .num_tokens = batch.padded.num_tokens + 64,
                           .group = cell.shape.num_heads / cell.shape.num_kv_heads,
                           .out = args.out,
                           .out_width = out_width};
  CheckCuda(cudaDeviceSynchronize(), "copies");  // they went through another stream
  const int count = batch.num_tokens() <= 1024 ? 40 : batch.num_tokens() <= 8192 ? 10 : 4;
  const double plan_time = MedianMicroseconds(
      [&](cudaStream_t on) { CheckCuda(LaunchPlan(plan_args, plan, on), "plan"); }, count, stream);
  std::string line;
  double best = 0;
  for (const Candidate& candidate : Candidates(cell.shape, batch.padded, args, plan)) {
    const double time = MedianMicroseconds(
        [&](cudaStream_t on) { CheckCuda(candidate.launch(on), candidate.name.c_str()); }, count,
        stream);
    line += fmt::format(" {} {:.2f}", candidate.name, time);
    best = best == 0 ? time : std::min(best, time);
  }
  fmt::print("{:<28}{} | best {:.0f} TFLOP/s, plan {:.2f}, chosen {}\n", cell.name, line,
             FloatingPointOperations(cell) / best / 1e6, plan_time,
             chosen.NameOf(cell.shape, batch.padded));
  std::fflush(stdout);
}

std::vector<int32_t> Uneven() {
  std::vector<int32_t> lengths;
  for (int i = 0; i < 64; ++i) {
    lengths.push_back(3 + i * 389 % 698);
  }
  return lengths;
}

std::vector<Cell> Cells() {
  constexpr auto kBoth = AttentionMask::kBidirectional;
  constexpr auto kCausal = AttentionMask::kCausal;
  std::vector<Cell> cells;
  const auto add = [&](int32_t heads, int32_t kv_heads, int32_t head_dim, AttentionMask mask,
                       int32_t window, int32_t count, int32_t length) {
    const bool is_uneven = length == 0;
    cells.push_back(
        {fmt::format("hd{}{}{} {}x{}", head_dim, mask == kCausal ? " causal" : "",
                     window > 0 ? fmt::format(" w{}", window) : "", count,
                     is_uneven ? "3..700" : std::to_string(length)),
         is_uneven ? Uneven() : std::vector<int32_t>(static_cast<size_t>(count), length),
         {heads, kv_heads, head_dim, mask, window}});
  };
  using Size = std::pair<int32_t, int32_t>;  // sequences, length
  const std::vector<Size> sizes = {{1, 16},   {1, 64},   {1, 128},   {1, 256},  {1, 512}, {1, 1024},
                                   {1, 2048}, {1, 4096}, {8, 16},    {8, 64},   {8, 128}, {4, 256},
                                   {2, 512},  {32, 64},  {16, 128},  {64, 32},  {64, 64}, {64, 128},
                                   {5, 512},  {25, 512}, {100, 512}, {256, 16}, {64, 0}};
  for (const auto& [count, length] : sizes) {
    add(16, 8, 128, kBoth, 0, count, length);
  }
  for (const auto& [count, length] : sizes) {
    add(16, 8, 128, kCausal, 0, count, length);
  }
  for (const auto& [count, length] : sizes) {
    add(16, 16, 64, kBoth, 0, count, length);
  }
  for (const auto& [count, length] : sizes) {
    add(16, 16, 64, kCausal, 0, count, length);
  }
  for (const auto& [count, length] :
       std::vector<Size>{{1, 64}, {1, 512}, {1, 4096}, {64, 64}, {8, 1024}, {25, 512}, {64, 0}}) {
    for (const auto mask : {kBoth, kCausal}) {
      add(12, 12, 64, mask, 64, count, length);
      add(16, 8, 128, mask, 256, count, length);
    }
  }
  for (const auto& [count, length] : std::vector<Size>{
           {1, 16}, {1, 128}, {1, 256}, {1, 512}, {32, 16}, {32, 128}, {256, 16}, {64, 0}}) {
    add(12, 12, 32, kBoth, 0, count, length);
  }
  // MPNet beside the same shape without its bias.
  for (const auto& [count, length] : std::vector<Size>{
           {1, 16}, {1, 128}, {1, 512}, {32, 16}, {32, 128}, {25, 512}, {256, 16}, {64, 0}}) {
    add(12, 12, 64, kBoth, 0, count, length);
    Cell biased = cells.back();
    biased.name = "bias " + biased.name;
    biased.shape.relative_bias = true;
    cells.push_back(std::move(biased));
  }
  return cells;
}

int Main(const std::string& only) {
  const AttentionSizes largest{512, 65536, 65536};
  DeviceAllocator allocator(0.9);
  PlanLists lists;
  if (const Status status = lists.Allocate(largest, allocator); !status.ok()) {
    fmt::print(stderr, "{}\n", status.ToString());
    return 1;
  }
  CheckCuda(PrepareTensorCoreAttention(), "prepare");
  auto chosen = RaggedAttention::Make(largest.num_tokens, largest.num_sequences, "", allocator);
  if (!chosen.ok()) {
    fmt::print(stderr, "{}\n", chosen.status().ToString());
    return 1;
  }
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (const Cell& cell : Cells()) {
    if (cell.name.find(only) != std::string::npos) {
      Measure(cell, lists, **chosen, stream);
    }
  }
  cudaStreamDestroy(stream);
  return 0;
}

}  // namespace
}  // namespace bouquet::rose::cuda

int main(int argc, char** argv) { return bouquet::rose::cuda::Main(argc > 1 ? argv[1] : ""); }
