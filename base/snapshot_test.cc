#include "base/snapshot.h"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace bouquet {
namespace {

TEST(SnapshotTest, KeepsWhatAReaderHasTaken) {
  Snapshot<std::string> snapshot("old");
  const std::shared_ptr<const std::string> taken = snapshot.Current();
  snapshot.Replace("new");
  EXPECT_EQ(*taken, "old");
  EXPECT_EQ(*snapshot.Current(), "new");
}

TEST(SnapshotTest, IsExchangedAsAWholeWhileOthersRead) {
  struct Pair {
    int first = 0;
    int second = 0;
  };
  Snapshot<Pair> snapshot(Pair{});
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::thread reader([&] {
    while (!done) {
      const auto pair = snapshot.Current();
      torn += pair->first == pair->second ? 0 : 1;
    }
  });
  for (int i = 1; i <= 2000; ++i) {
    snapshot.Replace({i, i});
  }
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace bouquet
