#include "rose/backend/cpu/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/cpu/processors.h"

namespace bouquet::rose::cpu {
namespace {

void RunStep(WorkerPool& pool, const std::function<void()>& step) {
  pool.PostStep(step);
  pool.WaitUntilIdle();
}

TEST(WorkerPoolTest, RunsEveryChunkOnce) {
  for (const int32_t workers : {1, 2, 3, 8}) {
    WorkerPool pool(workers);
    EXPECT_EQ(pool.size(), workers);
    for (const int64_t chunks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
      RunStep(pool, [&] {
        pool.ForEachChunk(chunks, [&](int64_t chunk, int32_t worker) {
          EXPECT_TRUE(worker >= 0 && worker < workers);
          ++runs[static_cast<size_t>(chunk)];
        });
      });
      for (const std::atomic<int>& count : runs) {
        EXPECT_EQ(count.load(), 1);
      }
    }
  }
}

TEST(WorkerPoolTest, ManyShortJobsInARowDoNotMix) {
  WorkerPool pool(4);
  RunStep(pool, [&] {
    for (int64_t job = 0; job < 20'000; ++job) {  // more jobs than a few spins, and than wraps
      std::atomic<int64_t> sum{0};
      const int64_t chunks = 2 + job % 5;
      pool.ForEachChunk(chunks, [&](int64_t chunk, int32_t) { sum += chunk + job; });
      ASSERT_EQ(sum.load(), chunks * (chunks - 1) / 2 + chunks * job);
    }
  });
}

TEST(WorkerPoolTest, NoWorkerNumberIsUsedTwiceAtOnce) {
  WorkerPool pool(3);
  std::vector<std::atomic<int>> inside(3);
  RunStep(pool, [&] {
    pool.ForEachChunk(2000, [&](int64_t, int32_t worker) {
      EXPECT_EQ(inside[static_cast<size_t>(worker)].fetch_add(1), 0);
      inside[static_cast<size_t>(worker)].fetch_sub(1);
    });
  });
}

TEST(WorkerPoolTest, WakesHelpersThatHaveGoneToSleepInsideAStep) {
  WorkerPool pool(2);
  std::atomic<int> runs{0};
  RunStep(pool, [&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      pool.ForEachChunk(64, [&](int64_t, int32_t) { ++runs; });
    }
  });
  EXPECT_EQ(runs.load(), 5 * 64);
}

TEST(WorkerPoolTest, StepsRunInOrderOnOneThread) {
  WorkerPool pool(2);
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 100; ++i) {
    RunStep(pool, [&] {
      EXPECT_TRUE(pool.IsInStep());
      threads.push_back(std::this_thread::get_id());
    });
  }
  EXPECT_FALSE(pool.IsInStep());
  ASSERT_EQ(threads.size(), 100U);
  for (const std::thread::id thread : threads) {
    EXPECT_EQ(thread, threads.front());
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

cpu_set_t AffinityOfThisThread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof mask, &mask), 0);
  return mask;
}

/// The affinity of each worker, seen from inside it. A chunk stays until every worker has one.
std::vector<cpu_set_t> AffinityOfWorkers(WorkerPool& pool) {
  std::vector<cpu_set_t> masks(static_cast<size_t>(pool.size()));
  std::atomic<int32_t> inside{0};
  RunStep(pool, [&] {
    pool.ForEachChunk(pool.size(), [&](int64_t, int32_t worker) {
      masks[static_cast<size_t>(worker)] = AffinityOfThisThread();
      ++inside;
      while (inside.load() < pool.size()) {
        std::this_thread::yield();
      }
    });
  });
  return masks;
}

TEST(WorkerPoolTest, WorkersRunOnTheProcessorsThatTheyAreBoundTo) {
  const std::vector<int32_t> processors = UsableProcessors().value();
  WorkerPool pool(static_cast<int32_t>(processors.size()));
  ASSERT_TRUE(pool.BindTo(processors).ok());
  const std::vector<cpu_set_t> masks = AffinityOfWorkers(pool);
  for (size_t worker = 0; worker < masks.size(); ++worker) {
    EXPECT_EQ(CPU_COUNT(&masks[worker]), 1) << worker;
    EXPECT_TRUE(CPU_ISSET(processors[worker], &masks[worker])) << worker;
  }
}

TEST(WorkerPoolTest, WorkersRunAnywhereByDefault) {
  const cpu_set_t own = AffinityOfThisThread();
  WorkerPool pool(3);
  for (const cpu_set_t& mask : AffinityOfWorkers(pool)) {
    EXPECT_TRUE(CPU_EQUAL(&mask, &own));
  }
}

TEST(WorkerPoolTest, BindingToAProcessorThatIsNotThereFails) {
  WorkerPool pool(1);
  const int32_t processors[] = {CPU_SETSIZE - 1};
  EXPECT_EQ(pool.BindTo(processors).code(), StatusCode::kInternal);
}

TEST(WorkerPoolTest, EndsWhileEverybodySleeps) {
  for (int i = 0; i < 50; ++i) {
    WorkerPool pool(3);
    if (i % 2 == 0) {
      RunStep(pool, [] {});
    }
  }
}

}  // namespace
}  // namespace bouquet::rose::cpu
