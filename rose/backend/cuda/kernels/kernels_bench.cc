// Times the kernels around the matrix products and prints what share of the device's own copy they
// reach: kernels_bench [TOKENS]. The roof is a large copy from device memory to device memory in
// the same run by a kernel of 16-byte accesses, bytes read plus bytes written. Every launch takes
// other buffers, more in all than the second-level cache holds, unless the case says "in cache".
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device.h"
#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/event.h"
#include "rose/backend/cuda/graph.h"
#include "rose/backend/cuda/kernels/activation.h"
#include "rose/backend/cuda/kernels/device_copy.h"
#include "rose/backend/cuda/kernels/norm.h"
#include "rose/backend/cuda/kernels/pooling.h"
#include "rose/backend/cuda/kernels/rotary.h"
#include "rose/backend/cuda/kernels/rows.h"
#include "rose/backend/cuda/stream.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int64_t kHidden = 1024;
constexpr int64_t kQueryKeyValue = 4096;  // 16 heads and 8 + 8 kv heads of 128
constexpr int64_t kIntermediate = 3072;
constexpr int64_t kVocabulary = 150'000;
constexpr int64_t kMostRows = 2048;  // of a step of 32,768 tokens
constexpr int kCopies = 24;          // of every buffer
constexpr int kLaunches = 48;
constexpr int kRuns = 9;

class Bench {
 public:
  Bench() : allocator_(0.9) {
    Result<Stream> stream = Stream::Create();
    CHECK(stream.ok());
    stream_ = std::move(stream).value();
    roof_ = MeasureRoof();
    fmt::print("copy of 2 GiB: {:.0f} GB/s, the roof\n", roof_);
    fmt::print("{:44} {:>9} {:>9} {:>9}\n", "kernel", "us", "GB/s", "of roof");
  }

  cudaStream_t stream() const { return stream_.get(); }

  /// Random numbers of unit size, `count` of them, kCopies times.
  std::vector<__nv_bfloat16*> Buffers(int64_t count) {
    std::vector<__nv_bfloat16*> buffers;
    for (int i = 0; i < kCopies; ++i) {
      buffers.push_back(Random(count));
    }
    return buffers;
  }
  __nv_bfloat16* Random(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<__nv_bfloat16> values(static_cast<size_t>(std::min<int64_t>(count, 1 << 16)));
    for (__nv_bfloat16& value : values) {
      value = __float2bfloat16(normal(random_));
    }
    auto* data = Take<__nv_bfloat16>(count);
    for (int64_t at = 0; at < count; at += static_cast<int64_t>(values.size())) {
      const auto some = std::min<int64_t>(count - at, static_cast<int64_t>(values.size()));
      CUDA_CHECK(cudaMemcpy(data + at, values.data(), static_cast<size_t>(some) * sizeof(*data),
                            cudaMemcpyHostToDevice));
    }
    return data;
  }
  template <class T>
  T* Upload(const std::vector<T>& values) {
    T* data = Take<T>(static_cast<int64_t>(values.size()));
    CUDA_CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
  }
  template <class T>
  T* Take(int64_t count) {
    Result<DeviceMemory> memory =
        allocator_.Allocate(static_cast<size_t>(count) * sizeof(T), "bench");
    CHECK(memory.ok());
    memory_.push_back(std::move(memory).value());
    return reinterpret_cast<T*>(memory_.back().get());
  }

  /// `launch(i)` for i = 0 … in one graph; `bytes` that one launch must read and write.
  void Report(const std::string& name, double bytes, const std::function<void(int)>& launch) {
    const double microseconds = Time(launch);
    const double speed = bytes / microseconds / 1000;
    fmt::print("{:44} {:9.2f} {:9.0f} {:8.0f} %\n", name, microseconds, speed, 100 * speed / roof_);
    memory_.clear();
  }

 private:
  double Time(const std::function<void(int)>& launch) {
    CUDA_CHECK(cudaDeviceSynchronize());
    Result<Graph> graph = Graph::Capture(stream(), [&] {
      for (int i = 0; i < kLaunches; ++i) {
        launch(i);
      }
    });
    Result<Event> begin = Event::CreateWithTime();
    Result<Event> end = Event::CreateWithTime();
    CHECK(graph.ok() && begin.ok() && end.ok());
    std::vector<float> times;
    for (int run = 0; run <= kRuns; ++run) {  // the first warms up
      begin->Record(stream());
      graph->Launch(stream());
      end->Record(stream());
      end->Wait();
      float milliseconds = 0;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin->get(), end->get()));
      if (run > 0) {
        times.push_back(milliseconds);
      }
    }
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    return 1000.0 * times[kRuns / 2] / kLaunches;
  }

  double MeasureRoof() {
    constexpr size_t kBytes = size_t{2} << 30;
    auto* from = Take<std::byte>(kBytes);
    auto* to = Take<std::byte>(kBytes);
    const double microseconds = Time([&](int) { LaunchDeviceCopy(from, to, kBytes, stream()); });
    memory_.clear();
    return 2.0 * kBytes / microseconds / 1000;
  }

  DeviceAllocator allocator_;
  Stream stream_;
  double roof_ = 0;
  std::mt19937 random_{20261130};
  std::vector<DeviceMemory> memory_;
};

template <class T>
T* At(const std::vector<T*>& buffers, int i) {
  return buffers[static_cast<size_t>(i) % buffers.size()];
}

double Bytes(int64_t elements) { return 2.0 * static_cast<double>(elements); }

void TimeNorms(Bench& bench, int64_t tokens) {
  for (const NormKind kind : {NormKind::kRmsNorm, NormKind::kLayerNorm}) {
    const auto x = bench.Buffers(tokens * kHidden);
    const auto out = bench.Buffers(tokens * kHidden);
    const std::vector<float> ones(kHidden, 1.0F);
    const float* gain = bench.Upload(ones);
    const bool is_layer_norm = kind == NormKind::kLayerNorm;
    bench.Report(
        fmt::format("{} [{}, {}]", is_layer_norm ? "LayerNorm" : "RMSNorm", tokens, kHidden),
        Bytes(2 * tokens * kHidden), [&](int i) {
          LaunchNorm({.x = At(x, i),
                      .x_stride = kHidden,
                      .out = At(out, i),
                      .out_stride = kHidden,
                      .rows = tokens,
                      .width = kHidden,
                      .kind = kind,
                      .gain = gain,
                      .bias = is_layer_norm ? gain : nullptr,
                      .epsilon = 1e-6F},
                     bench.stream());
        });
  }
}

void TimeEmbedding(Bench& bench, int64_t tokens) {
  std::mt19937 random(1);
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % kVocabulary);
  }
  const __nv_bfloat16* table = bench.Random(kVocabulary * kHidden);
  const int32_t* device_ids = bench.Upload(ids);
  const auto out = bench.Buffers(tokens * kHidden);
  bench.Report(fmt::format("embedding [{}, {}], rows again in cache", tokens, kHidden),
               Bytes(2 * tokens * kHidden), [&](int i) {
                 LaunchEmbed({.token_ids = device_ids,
                              .word = table,
                              .out = At(out, i),
                              .out_stride = kHidden,
                              .tokens = tokens,
                              .width = kHidden},
                             bench.stream());
               });
}

void TimeRotary(Bench& bench, int64_t tokens) {
  const auto qkv = bench.Buffers(tokens * kQueryKeyValue);
  std::vector<int32_t> positions(static_cast<size_t>(tokens));
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<int32_t>(i % 512);
  }
  RotaryArgs args;
  args.row_stride = kQueryKeyValue;
  args.tokens = tokens;
  args.num_heads = 16;
  args.num_kv_heads = 8;
  args.head_dim = 128;
  args.query_gain = bench.Upload(std::vector<float>(128, 1.0F));
  args.key_gain = args.query_gain;
  RotationsArgs rotations;
  rotations.rotations = bench.Take<float2>(tokens * 64);
  rotations.positions = bench.Upload(positions);
  rotations.tokens = tokens;
  rotations.head_dim = args.head_dim;
  std::fill(std::begin(rotations.frequencies), std::end(rotations.frequencies), 0.01F);
  args.rotations = rotations.rotations;
  LaunchRotations(rotations, bench.stream());
  bench.Report(fmt::format("norm and rotation of q and k, [{}, 24 x 128]", tokens),
               Bytes(2 * tokens * 3072), [&](int i) {
                 args.qkv = At(qkv, i);
                 LaunchRotary(args, bench.stream());
               });
}

void TimeRotations(Bench& bench, int64_t tokens) {
  RotationsArgs args;
  args.rotations = bench.Take<float2>(tokens * 64);
  args.positions = bench.Take<int32_t>(tokens);
  args.tokens = tokens;
  args.head_dim = 128;
  bench.Report(fmt::format("sines and cosines of a step, [{}, 64], in cache", tokens),
               static_cast<double>(tokens) * (64 * sizeof(float2) + sizeof(int32_t)),
               [&](int) { LaunchRotations(args, bench.stream()); });
}

void TimeActivations(Bench& bench, int64_t tokens) {
  for (const bool gated : {true, false}) {
    const int64_t in_width = gated ? 2 * kIntermediate : kQueryKeyValue;
    const int64_t width = gated ? kIntermediate : kQueryKeyValue;
    const auto in = bench.Buffers(tokens * in_width);
    const auto out = bench.Buffers(tokens * width);
    bench.Report(fmt::format("{} [{}, {}]", gated ? "SwiGLU" : "GELU", tokens, width),
                 Bytes(tokens * (in_width + width)), [&](int i) {
                   LaunchActivation({.in = At(in, i),
                                     .in_stride = in_width,
                                     .out = At(out, i),
                                     .out_stride = width,
                                     .rows = tokens,
                                     .width = width,
                                     .activation = gated ? Activation::kSilu : Activation::kGelu,
                                     .gated = gated},
                                    bench.stream());
                 });
  }
}

/// `rows` are as many sequences, or spans of one.
void TimePooling(Bench& bench, int64_t tokens, int64_t rows, PoolingMode mode, bool spans = false) {
  const auto hidden = bench.Buffers(tokens * kHidden);
  std::vector<PoolingRange> ranges;
  for (int64_t i = 0; i < rows; ++i) {
    const auto begin = static_cast<int32_t>(tokens * i / rows);
    const auto end = static_cast<int32_t>(tokens * (i + 1) / rows);
    ranges.push_back({spans ? 0 : begin, begin, end});
  }
  PoolingArgs args;
  args.hidden_stride = kHidden;
  args.ranges = bench.Upload(ranges);
  args.out = bench.Take<float>(rows * kHidden);
  args.out_stride = kHidden;
  args.rows = rows;
  args.width = kHidden;
  args.num_modes = 1;
  args.modes[0] = mode;
  const bool is_mean = mode == PoolingMode::kMean;
  const char* name = spans ? "mean over spans" : is_mean ? "mean pooling" : "last token pooling";
  bench.Report(fmt::format("{}, {} x {} tokens", name, rows, tokens / rows),
               Bytes((is_mean ? tokens : rows) * kHidden) + 2 * Bytes(rows * kHidden), [&](int i) {
                 args.hidden = At(hidden, i);
                 LaunchPooling(args, bench.stream());
               });
}

void TimeFormat(Bench& bench, int64_t rows, model::RowDtype dtype, const char* what) {
  const auto count = static_cast<size_t>(rows);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count * kHidden);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  FinishRowsArgs args;
  args.x_stride = kHidden;
  args.dimensions = bench.Upload(std::vector<int32_t>(count, static_cast<int32_t>(kHidden)));
  args.dtypes = bench.Upload(std::vector<model::RowDtype>(count, dtype));
  // pplx quantises rows that are not of unit length.
  args.normalize =
      bench.Upload(std::vector<uint8_t>(count, dtype == model::RowDtype::kTanhInt8 ? 0 : 1));
  args.statuses = bench.Take<RowStatus>(rows);
  args.rows = rows;
  args.width = kHidden;
  std::vector<const float*> x;
  std::vector<std::byte*> slots;
  for (int i = 0; i < kCopies; ++i) {
    x.push_back(bench.Upload(values));
    slots.push_back(bench.Take<std::byte>(4 * rows * kHidden));
  }
  // A slot is written in full, with zeros behind a quantised row.
  bench.Report(fmt::format("finite check, {} [{}, {}]{}", what, rows, kHidden,
                           rows < kMostRows ? ", in cache" : ""),
               4 * Bytes(rows * kHidden), [&](int i) {
                 args.x = At(x, i);
                 args.slots = At(slots, i);
                 LaunchFinishRows(args, bench.stream());
               });
}

void TimeFinish(Bench& bench, int64_t rows) {
  TimeFormat(bench, rows, model::RowDtype::kFloat32, "normalise");
  TimeFormat(bench, rows, model::RowDtype::kTanhInt8, "tanh-int8");
  TimeFormat(bench, rows, model::RowDtype::kSignBitsMsbFirst, "sign bits");
}

int Run(int64_t largest) {
  const Result<DeviceFacts> device = OpenDevice("cuda");
  if (!device.ok()) {
    fmt::print(stderr, "kernels_bench: {}\n", device.status().message());
    return 1;
  }
  Bench bench;
  for (const int64_t tokens : {int64_t{16}, largest}) {
    TimeEmbedding(bench, tokens);
    TimeNorms(bench, tokens);
    TimeRotary(bench, tokens);
    TimeRotations(bench, tokens);
    TimeActivations(bench, tokens);
    TimePooling(bench, tokens, 1, PoolingMode::kMean);
    TimePooling(bench, tokens, std::max<int64_t>(tokens / 512, 1), PoolingMode::kMean);
    TimePooling(bench, tokens, std::max<int64_t>(tokens / 512, 1), PoolingMode::kLastToken);
    TimePooling(bench, tokens, std::max<int64_t>(tokens / 64, 1), PoolingMode::kMean, true);
    TimePooling(bench, tokens, std::max<int64_t>(tokens / 16, 1), PoolingMode::kMean, true);
    TimeFinish(bench, std::max<int64_t>(tokens / 512, 1));
  }
  TimeFinish(bench, kMostRows);
  return 0;
}

}  // namespace
}  // namespace bouquet::rose::cuda

int main(int argc, char** argv) {
  constexpr int64_t kMostTokens = 65'536;
  const int64_t tokens = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 4096;
  if (argc > 2 || tokens < 1 || tokens > kMostTokens) {
    fmt::print(stderr, "usage: kernels_bench [TOKENS, 1..{}]\n", kMostTokens);
    return 2;
  }
  return bouquet::rose::cuda::Run(tokens);
}
