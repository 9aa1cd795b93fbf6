#include "cli/engine_flags.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::cli {
namespace {

using ::testing::HasSubstr;

std::optional<EngineFlags> Parse(std::vector<std::string> arguments) {
  EngineFlags flags;
  CLI::App app;
  flags.AddTo(app);
  std::ranges::reverse(arguments);  // as the parser wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  return flags;
}

TEST(EngineFlagsTest, TakesEveryFormOfADevice) {
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "cuda:15"}) {
    const std::optional<EngineFlags> flags = Parse({"--device", device});
    ASSERT_TRUE(flags.has_value()) << device;
    EXPECT_EQ(flags->Options().device, device);
  }
  for (const char* device :
       {"", "gpu", "cud", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999999999"}) {
    EXPECT_FALSE(Parse({"--device", device}).has_value()) << device;
  }
}

TEST(EngineFlagsTest, HandsTheEngineWhatItWasTold) {
  const std::optional<EngineFlags> flags =
      Parse({"--threads", "3", "--pin-threads", "true", "--graphs", "startup", "--attention", "fa2",
             "--memory-fraction", "0.25"});
  ASSERT_TRUE(flags.has_value());
  const rose::EngineOptions options = flags->Options();
  EXPECT_EQ(options.threads, 3);
  EXPECT_TRUE(options.pin_threads);
  EXPECT_EQ(options.graphs, "startup");
  EXPECT_EQ(options.attention, "fa2");
  EXPECT_EQ(options.memory_fraction, 0.25);
}

TEST(EngineFlagsTest, DefaultsAreTheEnginesOwn) {
  const rose::EngineOptions options = EngineFlags().Options();
  const rose::EngineOptions own;
  EXPECT_EQ(options.device, own.device);
  EXPECT_EQ(options.dtype, own.dtype);
  EXPECT_EQ(options.threads, own.threads);
  EXPECT_EQ(options.pin_threads, own.pin_threads);
  EXPECT_EQ(options.graphs, own.graphs);
  EXPECT_EQ(options.attention, own.attention);
  EXPECT_EQ(options.memory_fraction, own.memory_fraction);
}

TEST(EngineFlagsTest, TakesAFractionOverZeroAndUpToOne) {
  for (const char* fraction : {"1", "0.001", "1.0"}) {
    EXPECT_TRUE(Parse({"--memory-fraction", fraction}).has_value()) << fraction;
  }
  for (const char* fraction : {"0", "1.0001", "-1", "nan", "inf", "0.9x", ""}) {
    EXPECT_FALSE(Parse({"--memory-fraction=" + std::string(fraction)}).has_value()) << fraction;
  }
}

TEST(EngineFlagsTest, NamesTheFlagsThatNeedARestart) {
  const EngineFlags running;
  EXPECT_TRUE(running.CheckReload(running).ok());
  EngineFlags next = running;
  next.device = "cuda:1";
  next.pin_threads = true;
  next.graphs = "off";
  next.attention = "own";
  next.memory_fraction = 0.5;
  EXPECT_THAT(running.CheckReload(next).message(),
              HasSubstr("--device, --pin-threads, --graphs, --attention, --memory-fraction"));
}

TEST(EngineFlagsTest, TellsAWrongFlagFromAWrongModel) {
  EXPECT_EQ(ExitOfLoading(Unimplemented("no such device", "device")), ExitCode::kUsage);
  EXPECT_EQ(ExitOfLoading(InvalidArgument("not on this device", "dtype")), ExitCode::kUsage);
  EXPECT_EQ(ExitOfLoading(InvalidArgument("not on this device", "pin_threads")), ExitCode::kUsage);
  EXPECT_EQ(ExitOfLoading(InvalidArgument("wrong shape", "encoder.layer.0.weight")),
            ExitCode::kModel);
  EXPECT_EQ(ExitOfLoading(Internal("a step failed")), ExitCode::kModel);
}

}  // namespace
}  // namespace bouquet::cli
