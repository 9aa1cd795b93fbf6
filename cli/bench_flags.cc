#include "cli/bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

namespace bouquet::cli {
namespace {

constexpr int32_t kMostTokens = 1 << 20;
constexpr int32_t kDefaultMaxId = 20'000;
constexpr double kLongestSeconds = 3600;

std::chrono::nanoseconds Duration(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

Result<client::ClientOptions> Server(const std::string& url, const std::string& protocol) {
  client::ClientOptions options;
  ASSIGN_OR_RETURN(options.url, client::ParseUrl(url));
  options.dialect = protocol == "tei" ? client::Dialect::kTei : client::Dialect::kOpenAi;
  return options;
}

}  // namespace

const char* BenchSuiteName(BenchSuite suite) {
  switch (suite) {
    case BenchSuite::kLatency: return "latency";
    case BenchSuite::kScoring: return "scoring";
    case BenchSuite::kThroughput: return "throughput";
    case BenchSuite::kConcurrency: return "concurrency";
    case BenchSuite::kLoad: return "load";
  }
  return "";
}

void BenchFlags::AddTo(CLI::App& command) {
  command
      .add_option("URL", url,
                  "http://HOST:PORT[/PREFIX], HOST:PORT, or grpc://HOST:PORT of a `bouquet tulip`")
      ->required();
  AddSuiteFlags(command);
  AddLoadFlags(command);
  AddInputFlags(command);
  AddServerFlags(command);
  AddCheckFlags(command);
  AddFlag(command, "--output", output, "write the result to this file, as JSON");
  AddFlag(command, "--html", html, "write a report to this file: one page with plots");
  AddFlag(command, "--quiet", quiet, "true: no progress line");
}

void BenchFlags::AddSuiteFlags(CLI::App& command) {
  const auto list = [&](const std::string& flag, std::vector<int32_t>& value,
                        const std::string& help) {
    AddFlag(command, flag, value, help)->delimiter(',')->check(CLI::Range(1, kMostTokens));
  };
  switch (suite) {
    case BenchSuite::kLatency:
      lengths = {8, 16, 32, 64, 128, 512, 4096};
      list("--lengths", lengths, "tokens of an input, a row each");
      break;
    case BenchSuite::kScoring: list("--batches", batches, "inputs of a request, a row each"); break;
    case BenchSuite::kThroughput:
      lengths = {512, 1024, 4096};
      batch = 100;
      list("--lengths", lengths, "tokens of an input, a row each");
      break;
    case BenchSuite::kConcurrency:
      list("--in-flight", in_flight, "requests under way at once in each process, a row each");
      break;
    case BenchSuite::kLoad:
      AddFlag(command, "--rate", rate, "requests a second, whatever the answers do")
          ->required()
          ->check(CLI::Range(1e-3, 1e6));
      AddFlag(command, "--arrivals", arrivals, "poisson (independent clients) or even")
          ->check(CLI::IsMember({"poisson", "even"}));
      AddFlag(command, "--burst", burst, "then so many a second, then --rate again; 0: no burst")
          ->check(CLI::Range(0.0, 1e6));
      AddFlag(command, "--burst-seconds", burst_seconds, "how long the burst lasts")
          ->check(CLI::Range(0.01, kLongestSeconds));
      AddFlag(command, "--max-in-flight", max_in_flight,
              "requests under way at once in each process; what is due beyond waits, and its time "
              "runs")
          ->check(CLI::Range(1, 1 << 16));
      break;
  }
  if (suite == BenchSuite::kThroughput || suite == BenchSuite::kLoad) {
    AddFlag(command, "--batch", batch, "inputs of a request")->check(CLI::Range(1, 1 << 16));
  }
  if (suite != BenchSuite::kLatency && suite != BenchSuite::kThroughput) {
    AddFlag(command, "--tokens", tokens, "of an input")->check(CLI::Range(1, kMostTokens));
  }
}

void BenchFlags::AddLoadFlags(CLI::App& command) {
  AddFlag(command, "--rounds", rounds, "how often each row is measured; the spread is reported")
      ->check(CLI::Range(1, 1000));
  AddFlag(command, "--seconds", seconds,
          suite == BenchSuite::kLoad ? "at --rate; with a burst, before and after it"
                                     : "of a round: no request starts after it")
      ->check(CLI::Range(0.01, kLongestSeconds));
  if (suite != BenchSuite::kLoad) {
    AddFlag(command, "--requests", requests, "of a round and process at most; 0: no limit")
        ->check(CLI::NonNegativeNumber);
  }
  AddFlag(
      command, "--processes", processes,
      suite == BenchSuite::kThroughput ? "client processes; 0: four" : "client processes; 0: one")
      ->check(CLI::Range(0, 256));
  AddFlag(command, "--warm-up-seconds", warm_up_seconds,
          "of each row before it is measured; 0: none")
      ->check(CLI::Range(0.0, kLongestSeconds));
  AddFlag(command, "--warm-up-requests", warm_up_requests,
          "of each row and process at most; 0: no limit")
      ->check(CLI::NonNegativeNumber);
}

void BenchFlags::AddInputFlags(CLI::App& command) {
  AddFlag(command, "--texts", texts, "file of texts to send, one a line");
  AddFlag(command, "--inputs", inputs,
          "ids: random token ids; texts: the lines of --texts; auto: texts when that file is given")
      ->check(CLI::IsMember({"auto", "ids", "texts"}));
  AddFlag(command, "--min-id", min_id, "smallest random token id")->check(CLI::NonNegativeNumber);
  AddFlag(command, "--max-id", max_id,
          "largest random token id; 0: the last of the vocabulary if the server tells it, else "
          "20000")
      ->check(CLI::NonNegativeNumber);
  AddFlag(command, "--max-tokens", max_tokens,
          "longest input that the model takes; 0: as the server tells")
      ->check(CLI::Range(0, kMostTokens));
  AddFlag(command, "--seed", seed, "of random ids and arrivals");
}

void BenchFlags::AddServerFlags(CLI::App& command) {
  AddFlag(command, "--protocol", protocol,
          "openai: POST /v1/embeddings; tei: POST /embed of text-embeddings-inference")
      ->check(CLI::IsMember({"openai", "tei"}));
  AddFlag(command, "--route", route, "in place of the protocol's path: /embeddings");
  AddFlag(command, "--model", model, "the model's name in requests; empty: as the server tells");
  AddFlag(command, "--api-key", api_key, "sent as a bearer token");
  AddFlag(command, "--encoding", encoding, "of vectors asked for over openai: base64 or float")
      ->check(CLI::IsMember({"base64", "float"}));
  AddFlag(command, "--timeout-ms", timeout_ms, "for the whole answer to a request")
      ->check(CLI::Range(1, 3'600'000));
}

void BenchFlags::AddCheckFlags(CLI::App& command) {
  AddFlag(command, "--reference", reference,
          "vectors of --texts, as `bouquet embed --output` writes them (.npy or .jsonl): the "
          "server's must agree, or no time is reported");
  AddFlag(command, "--reference-url", reference_url,
          "a server whose vectors of the same inputs must agree");
  AddFlag(command, "--reference-protocol", reference_protocol, "of that server: openai or tei")
      ->check(CLI::IsMember({"openai", "tei"}));
  AddFlag(command, "--tolerance", tolerance, "largest 1 - cosine that counts as agreement")
      ->check(CLI::Range(0.0, 2.0));
  AddFlag(command, "--check-inputs", check_inputs, "how many inputs are compared")
      ->check(CLI::Range(1, 100'000));
}

Result<client::ClientOptions> BenchFlags::Target() const {
  ASSIGN_OR_RETURN(client::ClientOptions options, Server(url, protocol));
  if (!route.empty() && !route.starts_with('/')) {
    return InvalidArgument(fmt::format("--route must begin with /: {}", route));
  }
  options.route = route;
  options.model = model;
  options.api_key = api_key;
  options.base64 = encoding == "base64";
  options.request_timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

Result<std::optional<client::ClientOptions>> BenchFlags::ReferenceServer() const {
  if (reference_url.empty()) {
    return std::optional<client::ClientOptions>();
  }
  if (!reference.empty()) {
    return InvalidArgument("--reference and --reference-url cannot go together");
  }
  ASSIGN_OR_RETURN(client::ClientOptions options, Server(reference_url, reference_protocol));
  return std::optional(std::move(options));
}

Result<bench::InputSource> BenchFlags::Inputs(const bench::ServerFacts& facts) const {
  bench::InputSource source;
  const bool grpc = url.starts_with("grpc://") || reference_url.starts_with("grpc://");
  if (grpc && (uses_texts() || !reference.empty())) {
    return InvalidArgument(
        "gRPC carries token ids only: texts, and --reference, whose vectors belong to texts, need "
        "an HTTP server");
  }
  if (texts.empty() && (inputs == "texts" || !reference.empty())) {
    return InvalidArgument(inputs == "texts" ? "--inputs texts needs --texts"
                                             : "--reference needs --texts: the file whose lines "
                                               "the vectors belong to");
  }
  if (!texts.empty()) {
    ASSIGN_OR_RETURN(source.texts, bench::ReadTexts(texts));
  }
  source.min_id = min_id;
  source.seed = seed;
  const int64_t last_row =
      facts.vocabulary_rows > 0 && facts.vocabulary_rows <= std::numeric_limits<int32_t>::max()
          ? facts.vocabulary_rows - 1
          : kDefaultMaxId;
  source.max_id = max_id > 0 ? max_id : static_cast<int32_t>(last_row);
  if (!uses_texts() && source.min_id > source.max_id) {
    return InvalidArgument(fmt::format("--min-id must not be above --max-id: {} and {}",
                                       source.min_id, source.max_id));
  }
  return source;
}

int32_t BenchFlags::LongestInput(const bench::ServerFacts& facts) const {
  if (max_tokens > 0) {
    return max_tokens;
  }
  return facts.max_input_tokens > 0
             ? static_cast<int32_t>(std::min<int64_t>(facts.max_input_tokens, kMostTokens))
             : kMostTokens;
}

Result<std::vector<bench::RowPlan>> BenchFlags::Rows(const bench::ServerFacts& facts) const {
  const int32_t longest = LongestInput(facts);
  std::vector<int32_t> kept;
  std::copy_if(lengths.begin(), lengths.end(), std::back_inserter(kept),
               [longest](int32_t length) { return length <= longest; });
  if (uses_texts()) {
    kept = {longest};  // texts are as long as they are, in one row
  }
  if (!lengths.empty() && kept.empty()) {
    return InvalidArgument(
        fmt::format("--lengths are all over the longest input: {} tokens", longest));
  }
  const bench::RowDefaults defaults{.texts = uses_texts(),
                                    .processes = processes,
                                    .duration = Duration(seconds),
                                    .max_requests = requests};
  const int32_t length = std::min(tokens, longest);
  switch (suite) {
    case BenchSuite::kLatency: return bench::LatencyRows(kept, defaults);
    case BenchSuite::kScoring: return bench::ScoringRows(batches, length, defaults);
    case BenchSuite::kThroughput: return bench::ThroughputRows(kept, batch, defaults);
    case BenchSuite::kConcurrency: return bench::ConcurrencyRows(in_flight, length, defaults);
    case BenchSuite::kLoad: break;
  }
  bench::OpenLoad load;
  load.per_second = rate;
  load.spacing = arrivals == "even" ? bench::ArrivalPlan::Spacing::kEven
                                    : bench::ArrivalPlan::Spacing::kPoisson;
  load.seed = seed;
  load.burst_per_second = burst;
  load.burst_duration = Duration(burst_seconds);
  load.batch = batch;
  load.tokens = length;
  load.max_in_flight = max_in_flight;
  return std::vector<bench::RowPlan>{bench::OpenLoadRow(load, defaults)};
}

}  // namespace bouquet::cli
