#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load/inputs.h"
#include "bench/load/measure.h"
#include "bench/load/row_plan.h"
#include "bench/load/server_facts.h"
#include "cli/flags.h"
#include "client/embed_client.h"

namespace bouquet::cli {

enum class BenchSuite : uint8_t { kLatency, kScoring, kThroughput, kConcurrency, kLoad };

const char* BenchSuiteName(BenchSuite suite);

/// The flags of one suite of `bouquet bench`.
struct BenchFlags {
  BenchSuite suite = BenchSuite::kLatency;
  std::string url;

  // The server.
  std::string protocol = "openai";
  std::string route;
  std::string model;
  std::string api_key;
  std::string encoding = "base64";
  int64_t timeout_ms = 60'000;

  // The inputs.
  std::string texts;
  std::string inputs = "auto";
  int32_t min_id = 1000;
  int32_t max_id = 0;
  int32_t max_tokens = 0;
  uint64_t seed = 1;

  // The load.
  std::vector<int32_t> lengths;
  std::vector<int32_t> batches{5, 25, 50};
  std::vector<int32_t> in_flight{1, 2, 4, 8, 16};
  int32_t batch = 1;
  int32_t tokens = 512;
  double rate = 0;
  std::string arrivals = "poisson";
  double burst = 0;
  double burst_seconds = 5;
  int32_t max_in_flight = 1024;
  int32_t processes = 0;
  double seconds = 5;
  int64_t requests = 0;
  int32_t rounds = 3;
  double warm_up_seconds = 1;
  int64_t warm_up_requests = 0;

  // The check.
  std::string reference;
  std::string reference_url;
  std::string reference_protocol = "openai";
  double tolerance = 1e-3;
  int32_t check_inputs = 32;

  // The result.
  std::string output;
  std::string html;
  bool quiet = false;

  /// Adds the suite's own flags and those that all have.
  void AddTo(CLI::App& command);

  /// Where to send, but for the model's name, which the server may have to be asked for.
  Result<client::ClientOptions> Target() const;
  /// The server of --reference-url, if any.
  Result<std::optional<client::ClientOptions>> ReferenceServer() const;
  /// Reads --texts. Error: also for flags that contradict each other.
  Result<bench::InputSource> Inputs(const bench::ServerFacts& facts) const;
  /// Lengths over the server's maximum are left out, or cut where there is only one.
  /// Error: kInvalidArgument when nothing is left.
  Result<std::vector<bench::RowPlan>> Rows(const bench::ServerFacts& facts) const;
  bool uses_texts() const { return inputs == "texts" || (inputs == "auto" && !texts.empty()); }

 private:
  void AddServerFlags(CLI::App& command);
  void AddInputFlags(CLI::App& command);
  void AddLoadFlags(CLI::App& command);
  void AddCheckFlags(CLI::App& command);
  void AddSuiteFlags(CLI::App& command);
  int32_t LongestInput(const bench::ServerFacts& facts) const;
};

}  // namespace bouquet::cli
