#include "rose/backend/cpu/processors.h"

#include <sched.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/test_data.h"

namespace bouquet::rose::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void WriteSiblings(const std::filesystem::path& root, int processor, const std::string& list) {
  const std::filesystem::path folder = root / ("cpu" + std::to_string(processor)) / "topology";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "thread_siblings_list") << list << '\n';
}

TEST(ProcessorsTest, ProcessorsThatShareACoreComeLast) {
  const testing::TemporaryFolder root;
  for (int processor = 0; processor < 4; ++processor) {
    const std::string core = std::to_string(processor % 2);
    WriteSiblings(root.path(), processor, core + "," + std::to_string(processor % 2 + 2));
  }
  EXPECT_THAT(OnePerCoreFirst({3, 2, 1, 0}, root.path()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(OnePerCoreFirst({3, 1, 2}, root.path()), ElementsAre(1, 2, 3));
}

TEST(ProcessorsTest, ReadsRangesOfNeighboursToo) {
  const testing::TemporaryFolder root;
  for (int processor = 0; processor < 4; ++processor) {
    WriteSiblings(root.path(), processor, processor < 2 ? "0-1" : "2-3");
  }
  EXPECT_THAT(OnePerCoreFirst({0, 1, 2, 3}, root.path()), ElementsAre(0, 2, 1, 3));
}

TEST(ProcessorsTest, WithoutATopologyTheOrderAscends) {
  const testing::TemporaryFolder root;
  EXPECT_THAT(OnePerCoreFirst({5, 0, 3}, root.path()), ElementsAre(0, 3, 5));
  WriteSiblings(root.path(), 3, "none");
  EXPECT_THAT(OnePerCoreFirst({5, 0, 3}, root.path()), ElementsAre(0, 3, 5));
}

TEST(ProcessorsTest, UsableOnesAreThoseOfTheMask) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const Result<std::vector<int32_t>> processors = UsableProcessors();
  ASSERT_TRUE(processors.ok());
  EXPECT_EQ(processors.value().size(), static_cast<size_t>(CPU_COUNT(&mask)));
  for (const int32_t processor : processors.value()) {
    EXPECT_TRUE(CPU_ISSET(processor, &mask)) << processor;
  }
}

TEST(ProcessorsTest, AProcessorThatIsNotThereIsAnError) {
  for (const int32_t processor : {-1, CPU_SETSIZE, CPU_SETSIZE - 1}) {
    const Status status = BindThread(pthread_self(), processor);
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(processor)));
  }
}

}  // namespace
}  // namespace bouquet::rose::cpu
