#include "bench/load/report.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "bench/load/compare.h"
#include "bench/load/html_report.h"
#include "bench/load/svg_plot.h"

namespace bouquet::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// Rounds in which every request takes the same time, so that each figure is known.
RowResult Row(const std::string& name, const std::vector<std::chrono::milliseconds>& rounds) {
  RowResult row;
  row.plan.name = name;
  row.plan.batch = 2;
  row.plan.tokens = 8;
  for (const auto latency : rounds) {
    Tally& tally = row.rounds.emplace_back();
    for (int i = 0; i < 10; ++i) {
      tally.Record({.latency = latency, .num_inputs = 2, .num_tokens = 16}, false);
    }
    tally.elapsed = 10 * latency;
  }
  return row;
}

Report Example(const std::vector<std::chrono::milliseconds>& rounds = {4ms, 5ms, 10ms}) {
  Report report;
  report.suite = "latency";
  report.date = "2026-01-02T03:04:05Z";
  report.version = "0.1.0";
  report.commit = "abc";
  report.command = "bouquet bench latency <url>";
  report.url = "http://127.0.0.1:1";
  report.protocol = "openai";
  report.inputs = "ids 1000..20000, seed 1";
  report.rounds = 3;
  report.server.info = R"({"model_id":"m"})";
  report.server.model = "m";
  report.machine.cpu = "cpu";
  report.machine.flags = {"avx2"};
  report.clock.source = "CLOCK_MONOTONIC";
  report.rows.push_back(Summarise(Row("1 x 8 tokens", rounds)));
  return report;
}

double Number(const JsonDocument& document, const char* pointer) {
  double value = -1;
  EXPECT_EQ(document.root().at_pointer(pointer).get_double().get(value), simdjson::SUCCESS)
      << pointer;
  return value;
}

TEST(ReportTest, TakesTheMedianOfRoundsWithLeastAndMost) {
  const RowSummary row = Example().rows[0];
  const Metric* p50 = row.Find("p50_ms");
  ASSERT_NE(p50, nullptr);
  EXPECT_NEAR(p50->spread.median, 5, 0.005);
  EXPECT_NEAR(p50->spread.min, 4, 0.005);
  EXPECT_NEAR(p50->spread.max, 10, 0.01);
  // 20 inputs in 40, 50 and 100 ms.
  EXPECT_NEAR(row.Find("embeddings_per_s")->spread.median, 400, 1e-6);
  EXPECT_NEAR(row.Find("requests_per_s")->spread.max, 250, 1e-6);
  EXPECT_NEAR(row.Find("tokens_per_s")->spread.min, 1600, 1e-6);
  EXPECT_EQ(row.num_ok, 30);
}

TEST(ReportTest, WritesEveryFieldOfTheResultFile) {
  Report report = Example();
  report.check = CheckOutcome{"ref.npy", 4, 1e-7, "texts, text 2", 1e-3};
  const Result<JsonDocument> json = JsonDocument::Parse(WriteJson(report), "result");
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  for (const char* pointer : {"/format",
                              "/suite",
                              "/date",
                              "/version",
                              "/commit",
                              "/command",
                              "/complete",
                              "/server/url",
                              "/server/protocol",
                              "/server/model",
                              "/server/version",
                              "/server/info/model_id",
                              "/machine/cpu",
                              "/machine/cores",
                              "/machine/flags/0",
                              "/machine/memory_gib",
                              "/machine/load_average",
                              "/machine/kernel",
                              "/clock/source",
                              "/clock/resolution_ns",
                              "/clock/read_ns",
                              "/clock/cpu_mhz",
                              "/check/reference",
                              "/check/worst",
                              "/check/worst_input",
                              "/check/tolerance",
                              "/check/passed",
                              "/inputs",
                              "/rounds",
                              "/warm_up_seconds",
                              "/rows/0/name",
                              "/rows/0/complete",
                              "/rows/0/batch",
                              "/rows/0/tokens",
                              "/rows/0/processes",
                              "/rows/0/in_flight",
                              "/rows/0/loop",
                              "/rows/0/round_seconds",
                              "/rows/0/failed",
                              "/rows/0/first_error",
                              "/rows/0/latency_ms/p99_9",
                              "/rows/0/histogram/buckets/0/1",
                              "/rows/0/metrics/p99_ms/rounds/2"}) {
    EXPECT_EQ(json->root().at_pointer(pointer).error(), simdjson::SUCCESS) << pointer;
  }
  EXPECT_NEAR(Number(*json, "/rows/0/metrics/p50_ms/median"), 5, 0.005);
  EXPECT_NEAR(Number(*json, "/rows/0/latency_ms/max"), 10, 1e-9);
  EXPECT_EQ(Number(*json, "/rows/0/ok"), 30);
}

TEST(ReportTest, ReportsNoTimeOfARowThatNobodyAnswered) {
  RowResult row = Row("1 x 8 tokens", {});
  Tally& tally = row.rounds.emplace_back();
  Sample sample;
  sample.outcome = "429";
  sample.latency = 2ms;
  sample.has_retry_after = true;
  tally.Record(sample, false);
  tally.first_error = "full";
  tally.elapsed = 1s;
  row.complete = false;
  Report report = Example();
  report.rows = {Summarise(row)};
  EXPECT_EQ(report.rows[0].Find("p50_ms"), nullptr);
  const Result<JsonDocument> json = JsonDocument::Parse(WriteJson(report), "result");
  ASSERT_TRUE(json.ok());
  EXPECT_NE(json->root().at_pointer("/rows/0/latency_ms").error(), simdjson::SUCCESS);
  EXPECT_EQ(Number(*json, "/rows/0/failed/429/count"), 1);
  EXPECT_EQ(Number(*json, "/rows/0/failed/429/with_retry_after"), 1);
  EXPECT_FALSE(json->root()["complete"].get_bool().value());
  EXPECT_TRUE(json->root()["check"].is_null());
  const std::string table = WriteTable(report);
  EXPECT_THAT(table, HasSubstr("429: 1 requests, p50 2.00 ms, p99 2.00 ms, 1 with Retry-After"));
  EXPECT_THAT(table, HasSubstr("first error: full"));
  EXPECT_THAT(table, HasSubstr("(incomplete)"));
}

TEST(ReportTest, ShowsMediansAndSpreadInTheTable) {
  const std::string table = WriteTable(Example());
  EXPECT_THAT(table, HasSubstr("5.00 (4.00..10.0)"));
  EXPECT_THAT(table, HasSubstr("400 (200..500)"));
}

TEST(ReportTest, IsOnePageThatNeedsNothingElse) {
  const std::string html = WriteHtml(Example());
  EXPECT_THAT(html, HasSubstr("<polyline"));
  EXPECT_THAT(html, HasSubstr("bouquet bench latency &lt;url&gt;"));
  EXPECT_THAT(html, HasSubstr("not compared with a reference"));
  for (const char* outside : {"<script", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(ReportTest, WritesAFileAsAWholeOrSaysWhyNot) {
  const std::string path = ::testing::TempDir() + "report_test.json";
  ASSERT_TRUE(WriteFile(path, "content").ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "content");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  const Status status = WriteFile("no/such/folder/x.json", "content");
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("no/such/folder/x.json"));
}

TEST(SvgPlotTest, LeavesOutPointsThatCannotBeDrawn) {
  SvgPlot plot;
  plot.title = "a<b";
  plot.log_y = true;
  plot.x_ticks = {{0, "0"}, {1, "1"}};
  plot.lines = {{"line", {{0, 0}, {0.5, 10}, {1, std::numeric_limits<double>::infinity()}}}};
  const std::string svg = WriteSvg(plot);
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(WriteSvg({}), Not(HasSubstr("nan")));
}

TEST(ShowNumberTest, ShowsThreeDigitsThatMatter) {
  EXPECT_EQ(ShowNumber(0), "0");
  EXPECT_EQ(ShowNumber(0.0123456), "0.012");
  EXPECT_EQ(ShowNumber(0.5), "0.500");
  EXPECT_EQ(ShowNumber(1.2345), "1.23");
  EXPECT_EQ(ShowNumber(12.345), "12.3");
  EXPECT_EQ(ShowNumber(1234.5), "1234");
}

ComparableResult Comparable(const std::vector<std::chrono::milliseconds>& rounds,
                            const std::string& source) {
  Result<ComparableResult> result = ReadComparable(WriteJson(Example(rounds)), source);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return std::move(result).value();
}

TEST(CompareTest, MarksOnlyWhatIsBeyondTheSpreadOfTheRounds) {
  const ComparableResult before = Comparable({4ms, 5ms, 10ms}, "before.json");
  for (const auto& [rounds, verdict] :
       {std::pair(std::vector{9ms, 12ms, 20ms}, Change::Verdict::kSame),
        std::pair(std::vector{11ms, 12ms, 20ms}, Change::Verdict::kWorse),
        std::pair(std::vector{1ms, 2ms, 3ms}, Change::Verdict::kBetter),
        std::pair(std::vector{1ms}, Change::Verdict::kUnknown)}) {
    const std::vector<Change> changes = Compare(before, Comparable(rounds, "after.json"));
    ASSERT_EQ(changes.size(), 3U);
    for (const Change& change : changes) {  // latencies go down where the rate goes up
      EXPECT_EQ(change.verdict, verdict) << change.figure << " " << rounds[0].count();
    }
  }
  const std::vector<Change> changes = Compare(before, Comparable({11ms, 12ms, 20ms}, "after.json"));
  EXPECT_EQ(changes[0].figure, "p50_ms");
  EXPECT_NEAR(changes[0].ratio, 12.0 / 5, 0.005);
}

TEST(CompareTest, SaysWhatOnlyOneHas) {
  const ComparableResult before = Comparable({4ms, 5ms}, "before.json");
  ComparableResult after = Comparable({4ms, 5ms}, "after.json");
  after.rows[0].name = "another row";
  after.suite = "scoring";
  after.cpu = "another cpu";
  const std::string text = WriteComparison(before, after);
  EXPECT_THAT(text, HasSubstr("1 x 8 tokens: only in before.json"));
  EXPECT_THAT(text, HasSubstr("another row: only in after.json"));
  EXPECT_THAT(text, HasSubstr("the suites differ"));
  EXPECT_THAT(text, HasSubstr("the machines differ"));
}

TEST(CompareTest, RefusesWhatIsNoResult) {
  for (const char* text :
       {"", "[]", "{}", R"({"format":"other"})",
        R"({"format":"bouquet-bench-1","suite":"s","commit":"c"})",
        R"({"format":"bouquet-bench-1","suite":"s","commit":"c","rows":[{}]})"}) {
    const auto result = ReadComparable(text, "file.json");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.status().message(), HasSubstr("file.json")) << text;
  }
}

}  // namespace
}  // namespace bouquet::bench
