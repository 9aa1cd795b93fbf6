#include "rose/backend/cpu/cpu_count.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "testing/test_data.h"

namespace bouquet::rose::cpu {
namespace {

void Write(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << content;
}

TEST(CpuCountTest, ReadsQuotasOfBothVersions) {
  EXPECT_EQ(QuotaOfVersion2("200000 100000\n"), 2.0);
  EXPECT_EQ(QuotaOfVersion2("max 100000\n"), 0.0);
  EXPECT_EQ(QuotaOfVersion2(""), 0.0);
  EXPECT_EQ(QuotaOfVersion2("150000"), 0.0);
  EXPECT_EQ(QuotaOfVersion1("150000\n", "100000\n"), 1.5);
  EXPECT_EQ(QuotaOfVersion1("-1\n", "100000\n"), 0.0);
  EXPECT_EQ(QuotaOfVersion1("", ""), 0.0);
}

TEST(CpuCountTest, TakesTheSmallestQuotaOnTheWayToTheRoot) {
  const testing::TemporaryFolder folder;
  Write(folder.path() / "pod" / "cpu.max", "400000 100000\n");
  Write(folder.path() / "pod" / "box" / "cpu.max", "max 100000\n");
  EXPECT_EQ(ControlGroupQuota(folder.path(), "0::/pod/box\n"), 4.0);
  Write(folder.path() / "pod" / "box" / "cpu.max", "300000 100000\n");
  EXPECT_EQ(ControlGroupQuota(folder.path(), "0::/pod/box\n"), 3.0);
}

TEST(CpuCountTest, ReadsTheRootWhenTheContainerHidesThePath) {
  const testing::TemporaryFolder folder;
  Write(folder.path() / "cpu.max", "100000 100000\n");
  EXPECT_EQ(ControlGroupQuota(folder.path(), "0::/not/visible/here\n"), 1.0);
}

TEST(CpuCountTest, ReadsTheCpuControllerOfVersion1) {
  const testing::TemporaryFolder folder;
  Write(folder.path() / "cpu" / "box" / "cpu.cfs_quota_us", "250000\n");
  Write(folder.path() / "cpu" / "box" / "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ControlGroupQuota(folder.path(), "5:memory:/box\n4:cpu,cpuacct:/box\n"), 2.5);
  EXPECT_EQ(ControlGroupQuota(folder.path(), "5:memory:/box\n3:cpuset:/box\n"), 0.0);
}

TEST(CpuCountTest, SurvivesAnyContent) {
  const testing::TemporaryFolder folder;
  for (const char* self : {"", "x", "0:", "0::", "0::/", "a:cpu:b", "::::", "0::relative\n"}) {
    EXPECT_EQ(ControlGroupQuota(folder.path(), self), 0.0) << self;
  }
}

TEST(CpuCountTest, CountsAtLeastOneCore) { EXPECT_GE(UsableCores(), 1); }

}  // namespace
}  // namespace bouquet::rose::cpu
