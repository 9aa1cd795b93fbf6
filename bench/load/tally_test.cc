#include "bench/load/tally.h"

#include <gtest/gtest.h>

namespace bouquet::bench {
namespace {

using namespace std::chrono_literals;

Sample Answered(std::chrono::nanoseconds intended, std::chrono::nanoseconds latency) {
  return {.intended = intended, .lag = 10us, .latency = latency, .num_inputs = 2, .num_tokens = 16};
}

Sample Refused(std::chrono::nanoseconds intended, std::chrono::nanoseconds latency) {
  Sample sample = Answered(intended, latency);
  sample.outcome = "429";
  sample.has_retry_after = true;
  return sample;
}

Tally Example() {
  Tally tally;
  tally.Record(Answered(0ms, 5ms), true);
  tally.Record(Answered(260ms, 7ms), true);
  tally.Record(Refused(270ms, 1ms), true);
  tally.RecordUnsent();
  tally.first_error = "the server answered 429: \"full\"\n";
  tally.elapsed = 300ms;
  return tally;
}

TEST(TallyTest, KeepsAnswersAndFailuresApart) {
  const Tally tally = Example();
  EXPECT_EQ(tally.num_ok(), 2);
  EXPECT_EQ(tally.num_inputs, 4);
  EXPECT_EQ(tally.num_tokens, 32);
  EXPECT_EQ(tally.num_failed(), 2);
  EXPECT_EQ(tally.failed.at("429").count, 1);
  EXPECT_EQ(tally.failed.at("429").with_retry_after, 1);
  EXPECT_EQ(tally.failed.at("429").latency.max(), 1ms);
  EXPECT_EQ(tally.failed.at("unsent").count, 1);
  EXPECT_EQ(tally.latency.max(), 7ms);  // a quick refusal is no quick answer
}

TEST(TallyTest, PutsRequestsIntoTheWindowInWhichTheyWereDue) {
  const Tally tally = Example();
  ASSERT_EQ(tally.windows.size(), 2U);
  EXPECT_EQ(tally.windows[0].ok, 1);
  EXPECT_EQ(tally.windows[1].ok, 1);
  EXPECT_EQ(tally.windows[1].failed, 1);
  Tally closed;
  closed.Record(Answered(260ms, 7ms), false);
  EXPECT_TRUE(closed.windows.empty());
}

TEST(TallyTest, CountsWhatIsDueAfterTheLastWindowInIt) {
  Tally tally;
  tally.Record(Answered(1h, 1ms), true);
  EXPECT_EQ(tally.windows.size(), Tally::kMaxWindows);
  EXPECT_EQ(tally.windows.back().ok, 1);
}

TEST(TallyTest, ComesThroughThePipeUnchanged) {
  const Tally tally = Example();
  const std::string line = WriteTally(tally);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<Tally> back = ReadTally(line);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(WriteTally(*back), line);
  EXPECT_EQ(back->first_error, tally.first_error);
}

TEST(TallyTest, MergesPartsOfOneRound) {
  Tally total = Example();
  Tally other = Example();
  other.elapsed = 400ms;
  other.complete = false;
  other.Record(Answered(600ms, 9ms), true);
  total.Merge(other);
  EXPECT_EQ(total.num_ok(), 5);
  EXPECT_EQ(total.failed.at("429").count, 2);
  EXPECT_EQ(total.windows.size(), 3U);
  EXPECT_EQ(total.windows[1].ok, 2);
  EXPECT_EQ(total.elapsed, 400ms);
  EXPECT_FALSE(total.complete);
}

TEST(TallyTest, RefusesALineThatIsNoTally) {
  for (const char* line :
       {"", "{}", "[]", "{\"latency\":{}}",
        "{\"latency\":{\"min_ns\":0,\"max_ns\":0,\"sum_ns\":0,\"buckets\":[1]}}"}) {
    EXPECT_FALSE(ReadTally(line).ok()) << line;
  }
}

}  // namespace
}  // namespace bouquet::bench
