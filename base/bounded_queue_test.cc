#include "base/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet {
namespace {

TEST(BoundedQueueTest, GivesValuesInTheOrderTheyCame) {
  BoundedQueue<int> queue(4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(queue.TryPush(int{i}));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(queue.Pop(), i);
  }
}

TEST(BoundedQueueTest, RefusesAtCapacityAndLeavesTheValueWhole) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(second)));
  // NOLINTBEGIN(bugprone-use-after-move): a refused value stays with us
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  // NOLINTEND(bugprone-use-after-move)
}

TEST(BoundedQueueTest, BoundsEachLaneApart) {
  BoundedQueue<int> queue(1, 2);
  EXPECT_TRUE(queue.TryPush(1, 1));
  EXPECT_FALSE(queue.TryPush(2, 1));
  EXPECT_TRUE(queue.TryPush(3, 0));
  EXPECT_EQ(queue.size(), 2U);
}

TEST(BoundedQueueTest, ServesTheFirstLaneFirst) {
  BoundedQueue<int> queue(4, 2);
  EXPECT_TRUE(queue.TryPush(10, 1));
  EXPECT_TRUE(queue.TryPush(1, 0));
  EXPECT_TRUE(queue.TryPush(2, 0));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 10);
}

TEST(BoundedQueueTest, DoesNotStarveTheLastLane) {
  BoundedQueue<int> queue(4, 2);
  EXPECT_TRUE(queue.TryPush(-1, 1));
  int pops = 0;
  for (bool served = false; !served; ++pops) {
    ASSERT_TRUE(queue.TryPush(int{pops}, 0));
    served = queue.Pop() == -1;
    ASSERT_LE(pops, 8);
  }
  EXPECT_EQ(pops, 8);
}

TEST(BoundedQueueTest, TakesBackWhatItGaveEvenWhenFull) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.TryPush(1));
  const std::optional<int> taken = queue.Pop();
  EXPECT_TRUE(queue.TryPush(2));
  queue.PutBack(*taken);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 1);
}

TEST(BoundedQueueTest, GivesOutWhatItHoldsAfterClosing) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  queue.Close();
  EXPECT_FALSE(queue.TryPush(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, PassesEveryValueOnceBetweenManyThreads) {
  constexpr int kPerProducer = 2000;
  BoundedQueue<int> queue(8, 2);
  std::atomic<int64_t> sum = 0;
  std::atomic<int> received = 0;
  std::vector<std::thread> consumers;
  for (int c = 0; c < 3; ++c) {
    consumers.emplace_back([&] {
      while (const std::optional<int> value = queue.Pop()) {
        sum += *value;
        ++received;
      }
    });
  }
  std::vector<std::thread> producers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kPerProducer; ++i) {
        while (!queue.TryPush(int{i}, static_cast<size_t>(p) % 2)) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& producer : producers) {
    producer.join();
  }
  queue.Close();
  for (std::thread& consumer : consumers) {
    consumer.join();
  }
  EXPECT_EQ(received, 3 * kPerProducer);
  EXPECT_EQ(sum, int64_t{3} * kPerProducer * (kPerProducer - 1) / 2);
}

}  // namespace
}  // namespace bouquet
