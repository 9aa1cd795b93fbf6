#include "rose/backend/cuda/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/kernels/device_copy.h"
#include "rose/backend/cuda/stream.h"

namespace bouquet::rose::cuda {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (int count = 0; cudaGetDeviceCount(&count) != cudaSuccess) {
      GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(cudaGetLastError());
    }
    Result<Stream> stream = Stream::Create();
    Result<DeviceMemory> memory = allocator_.Allocate(2 * kBytes, "a test");
    ASSERT_TRUE(stream.ok() && memory.ok());
    stream_ = std::move(stream).value();
    memory_ = std::move(memory).value();
    LaunchDeviceCopy(memory_.get(), memory_.get() + kBytes, kBytes, stream_.get());
    ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  }

  Result<Graph> Capture(int launches) {
    return Graph::Capture(stream_.get(), [&] {
      for (int i = 0; i < launches; ++i) {
        LaunchDeviceCopy(memory_.get(), memory_.get() + kBytes, kBytes, stream_.get());
      }
    });
  }

  static int64_t FreeBytes() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return static_cast<int64_t>(free);
  }

  DeviceAllocator allocator_{0.9};
  Stream stream_;
  DeviceMemory memory_;
};

TEST_F(GraphTest, ALaunchDoesWhatWasCaptured) {
  ASSERT_EQ(cudaMemset(memory_.get(), 7, kBytes), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const Result<Graph> graph = Capture(1);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  graph->Launch(stream_.get());
  ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  std::vector<char> copied(kBytes);
  ASSERT_EQ(cudaMemcpy(copied.data(), memory_.get() + kBytes, kBytes, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(copied, std::vector<char>(kBytes, 7));
}

TEST_F(GraphTest, ClearsOnceBeforeAllElse) {
  // Four parts of one buffer: each is cleared, then copied over the next.
  std::byte* data = memory_.get();
  constexpr size_t kPart = kBytes / 4;
  const auto launches = [&] {
    for (int part = 0; part < 3; ++part) {
      ASSERT_EQ(cudaMemsetAsync(data + part * kPart, 0, 64, stream_.get()), cudaSuccess);
      LaunchDeviceCopy(data + part * kPart, data + kBytes + part * kPart, kPart, stream_.get());
    }
    ASSERT_EQ(cudaMemsetAsync(data + kBytes, 5, 16, stream_.get()), cudaSuccess);
  };
  const Result<Graph> as_is = Graph::Capture(stream_.get(), launches);
  const Result<Graph> at_once = Graph::Capture(stream_.get(), launches, {data, kBytes});
  ASSERT_TRUE(as_is.ok() && at_once.ok()) << at_once.status().ToString();
  EXPECT_EQ(as_is->num_nodes(), 7U);
  EXPECT_EQ(at_once->num_nodes(), 5U);  // one for all three
  ASSERT_EQ(cudaMemset(data, 1, 2 * kBytes), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  at_once->Launch(stream_.get());
  ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  std::vector<char> copied(kBytes);
  ASSERT_EQ(cudaMemcpy(copied.data(), data + kBytes, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  std::vector<char> expected(kBytes, 1);
  std::fill(expected.begin(), expected.begin() + 3 * kPart, 0);
  std::fill(expected.begin(), expected.begin() + 16, 5);
  EXPECT_EQ(copied, expected);
}

TEST_F(GraphTest, TakesNoMoreMemoryThanItCounts) {
  constexpr int kGraphs = 64;
  constexpr int64_t kUnit = int64_t{2} << 20;  // what the driver takes at once
  for (const int launches : {20, 300}) {
    const int64_t before = FreeBytes();
    std::vector<Graph> graphs;
    int64_t counted = 0;
    for (int i = 0; i < kGraphs; ++i) {
      Result<Graph> graph = Capture(launches);
      ASSERT_TRUE(graph.ok()) << graph.status().ToString();
      counted += graph->bytes();
      graphs.push_back(std::move(graph).value());
    }
    EXPECT_LE(before - FreeBytes(), counted + kUnit) << launches << " launches a graph";
  }
}

}  // namespace
}  // namespace bouquet::rose::cuda
