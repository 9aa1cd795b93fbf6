#include "bench/load/client_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

namespace bouquet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClientProcessesTest, GivesBackWhatEachReturnedInOrder) {
  const auto results = RunClientProcesses(
      3,
      [](size_t index, ParentChannel& parent) -> Result<std::string> {
        if (!parent.WaitForStart()) {
          return Internal("the parent gave up");
        }
        return std::string(index * 100'000, 'x') + std::to_string(index);  // more than a pipe holds
      },
      {});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_THAT(*results,
              ElementsAre("0", std::string(100'000, 'x') + "1", std::string(200'000, 'x') + "2"));
}

TEST(ClientProcessesTest, RunsEachInAProcessOfItsOwn) {
  const auto results = RunClientProcesses(
      2, [](size_t, ParentChannel&) -> Result<std::string> { return std::to_string(getpid()); },
      {});
  ASSERT_TRUE(results.ok());
  EXPECT_NE((*results)[0], (*results)[1]);
  EXPECT_NE((*results)[0], std::to_string(getpid()));
}

TEST(ClientProcessesTest, StartsNoneBeforeAllAreReady) {
  std::array<int, 2> order{};
  ASSERT_EQ(pipe(order.data()), 0);
  const auto results =
      RunClientProcesses(2,
                         [&](size_t index, ParentChannel& parent) -> Result<std::string> {
                           if (index == 0) {
                             usleep(50'000);
                             EXPECT_EQ(write(order[1], "p", 1), 1);
                           }
                           parent.WaitForStart();
                           EXPECT_EQ(write(order[1], "s", 1), 1);
                           return std::string();
                         },
                         {});
  ASSERT_TRUE(results.ok());
  std::string seen(3, ' ');
  EXPECT_EQ(read(order[0], seen.data(), 3), 3);
  EXPECT_EQ(seen, "pss");
  close(order[0]);
  close(order[1]);
}

TEST(ClientProcessesTest, PassesOnAnErrorWithItsCodeAndEndsTheOthers) {
  const auto results =
      RunClientProcesses(2,
                         [](size_t index, ParentChannel& parent) -> Result<std::string> {
                           if (index == 1) {
                             return Unavailable("cannot connect:\nnobody there");
                           }
                           parent.WaitForStart();  // for ever: the other one is never ready
                           return std::string();
                         },
                         {});
  EXPECT_EQ(results.code(), StatusCode::kUnavailable);
  EXPECT_EQ(results.status().message(), "cannot connect: nobody there");
}

TEST(ClientProcessesTest, NamesTheProcessThatDied) {
  const auto killed = RunClientProcesses(3,
                                         [](size_t index, ParentChannel&) -> Result<std::string> {
                                           if (index == 1) {
                                             kill(getpid(), SIGKILL);
                                           }
                                           return std::string("fine");
                                         },
                                         {});
  EXPECT_EQ(killed.code(), StatusCode::kInternal);
  EXPECT_THAT(killed.status().message(), HasSubstr("client process 2 of 3"));
  EXPECT_THAT(killed.status().message(), HasSubstr("killed by signal 9"));

  const auto left =
      RunClientProcesses(1, [](size_t, ParentChannel&) -> Result<std::string> { _exit(3); }, {});
  EXPECT_THAT(left.status().message(), HasSubstr("exit code 3"));
}

TEST(ClientProcessesTest, TurnsAnExceptionIntoAnError) {
  const auto results = RunClientProcesses(
      1,
      [](size_t, ParentChannel&) -> Result<std::string> { throw std::runtime_error("no memory"); },
      {});
  EXPECT_EQ(results.code(), StatusCode::kInternal);
  EXPECT_EQ(results.status().message(), "no memory");
}

TEST(ClientProcessesTest, AddsUpTheProgressOfAll) {
  int64_t last = 0;
  const auto results = RunClientProcesses(
      2,
      [](size_t index, ParentChannel& parent) -> Result<std::string> {
        parent.ReportProgress(static_cast<int64_t>(index) + 5);
        return std::string();
      },
      {.interrupted = nullptr, .on_progress = [&](int64_t answered) { last = answered; }});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(last, 11);
}

TEST(ClientProcessesTest, StopsProcessesWithASignalWhenInterrupted) {
  std::atomic<bool> interrupted = false;
  const auto results =
      RunClientProcesses(1,
                         [](size_t, ParentChannel& parent) -> Result<std::string> {
                           sigset_t signals;
                           sigemptyset(&signals);
                           sigaddset(&signals, SIGINT);
                           sigprocmask(SIG_BLOCK, &signals, nullptr);
                           parent.WaitForStart();
                           parent.ReportProgress(1);
                           int signal = 0;
                           sigwait(&signals, &signal);
                           return std::string("stopped early");
                         },
                         {.interrupted = &interrupted,
                          .on_progress = [&](int64_t answered) { interrupted = answered > 0; }});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_THAT(*results, ElementsAre("stopped early"));
}

TEST(ClientProcessesTest, IsCancelledWhenInterruptedBeforeTheStart) {
  const std::atomic<bool> interrupted = true;
  const auto results = RunClientProcesses(1,
                                          [](size_t, ParentChannel&) -> Result<std::string> {
                                            pause();
                                            return std::string();
                                          },
                                          {.interrupted = &interrupted, .on_progress = {}});
  EXPECT_EQ(results.code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace bouquet::bench
