#include "cli/signals.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace bouquet::cli {
namespace {

TEST(SignalsDeathTest, EndAtTheNextOutlivesTheSignalsItWasAskedOf) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto signals = std::make_unique<Signals>();
        signals->EndAtTheNext();
        signals.reset();
        kill(getpid(), SIGTERM);
        std::this_thread::sleep_for(std::chrono::minutes(1));
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kInterrupted)), "");
}

}  // namespace
}  // namespace bouquet::cli
