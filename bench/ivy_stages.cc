// Where does the time of one short query go, from the client's send to the last byte of its answer?
// The whole of Bouquet in this process but the engine (null_model.h); a blocking client that sends
// one query after the other; marks where the parts meet. In turns with a bare HTTP server
// (beast_echo), which shows what sockets, wake-ups and the client itself cost.
//
//   ivy_stages MODEL ECHO_PORT REQUESTS
//
// Writes one JSON object with medians in microseconds; bench/split_items.py reads it.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bench/null_model.h"
#include "ivy/api/openai.h"
#include "ivy/config.h"
#include "ivy/gateway.h"
#include "ivy/handlers/resolve_request.h"
#include "testing/null_step_engine.h"

namespace bouquet::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kText = "how do I change my password";
constexpr int kTurn = 200;  // queries to one server before the other has its turn

std::string Body() {
  return fmt::format(R"({{"input": "{}", "encoding_format": "base64"}})", kText);
}

/// The moments of the query under way, in order. Written by whichever thread gets there, read by
/// the client when the answer has arrived.
enum Mark : size_t {
  kSent,       // the client, before it sends
  kReceived,   // the gateway has parsed the HTTP request
  kResolved,   // its body has been parsed and resolved
  kTokenized,  // tokens, cut into chunks, reach the replica
  kStep,       // Tulip's loop starts the step
  kAnswered,   // the rows are back in the gateway
  kGathered,   // and in input order
  kRead,       // the client has the last byte
  kNumMarks
};
std::array<std::atomic<TimePoint>, kNumMarks> marks;

void Set(Mark mark) { marks[mark].store(steady_clock::now()); }

class MarkingEngine final : public tulip::StepEngine {
 public:
  rose::LazyTensor Step(const rose::Batch& batch) override {
    Set(kStep);
    return engine_.Step(batch);
  }
  const rose::EngineInfo& info() const override { return engine_.info(); }

 private:
  testing::NullStepEngine engine_;
};

class MarkingReplica final : public ivy::Replica {
 public:
  explicit MarkingReplica(std::unique_ptr<ivy::Replica> replica) : replica_(std::move(replica)) {}

  std::string_view name() const override { return replica_->name(); }
  std::optional<ivy::ReplicaDescription> Describe() const override { return replica_->Describe(); }
  ivy::ReplicaLoad Load() const override { return replica_->Load(); }
  boost::asio::awaitable<Result<ivy::ChunkRows>> Submit(ivy::Chunk chunk) override {
    Set(kTokenized);
    Result<ivy::ChunkRows> rows = co_await replica_->Submit(std::move(chunk));
    Set(kAnswered);
    co_return rows;
  }

 private:
  const std::unique_ptr<ivy::Replica> replica_;
};

boost::asio::awaitable<Result<ivy::EncodedRows>> EncodeMarked(NullModel& model,
                                                              std::chrono::milliseconds timeout,
                                                              ivy::EncodeRequest request) {
  Set(kResolved);
  marks[kReceived].store(request.deadline.at - timeout);  // that is how the handler makes it
  Result<ivy::EncodedRows> rows = co_await model.encoder().Encode(std::move(request));
  Set(kGathered);
  co_return rows;
}

/// One connection, one request at a time.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::string body = Body();
    request_ = fmt::format(
        "POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "content-length: {}\r\n\r\n{}",
        body.size(), body);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Ask() {
    Set(kSent);
    CHECK_EQ(send(socket_, request_.data(), request_.size(), 0),
             static_cast<ssize_t>(request_.size()));
    size_t size = 0;
    while (size < answer_.size() && !IsWhole({answer_.data(), size})) {
      const ssize_t more = recv(socket_, answer_.data() + size, answer_.size() - size, 0);
      CHECK_LT(0, more);
      size += static_cast<size_t>(more);
    }
    Set(kRead);
    CHECK(std::string_view(answer_.data(), size).starts_with("HTTP/1.1 200"));
  }

 private:
  static bool IsWhole(std::string_view answer) {
    constexpr std::string_view kEnd = "\r\n\r\n";
    constexpr std::string_view kLength = "ength: ";  // of Content-Length, in either spelling
    const size_t head = answer.find(kEnd);
    const size_t length = answer.substr(0, head).find(kLength);
    if (head == std::string_view::npos || length == std::string_view::npos) {
      return false;
    }
    size_t body = 0;
    std::from_chars(answer.data() + length + kLength.size(), answer.data() + head, body);
    return answer.size() >= head + kEnd.size() + body;
  }

  const int socket_;
  std::string request_;
  std::array<char, 64 << 10> answer_{};
};

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Between(Mark from, Mark to) {
  return std::chrono::duration<double, std::micro>(marks[to].load() - marks[from].load()).count();
}

/// Median time of one call, of many runs of many calls each: they are shorter than the clock's own
/// reading.
template <class Call>
double TimeAlone(const Call& call) {
  constexpr int kRuns = 200;
  constexpr int kCalls = 100;
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const TimePoint begin = steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      call();
    }
    runs.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count() /
                   kCalls);
  }
  return Median(runs);
}

/// The pure functions among the stages, each by itself and warm.
std::string TimeFunctions(NullModel& model, const ivy::Config& config) {
  const std::string body = Body();
  const ivy::api::ParseOptions options;
  const auto parse = [&] {
    return std::get<ivy::api::Request>(ivy::api::kOpenAiEmbeddings.parse(body, options));
  };
  text::EncodeScratch scratch;
  ivy::EncodedRows rows;
  rows.dimensions = static_cast<uint32_t>(model.folder().pipeline.width);
  rows.values.assign(rows.dimensions, 0.05103104F);
  rows.token_counts = {8};
  rows.truncated = {0};
  std::string answer;
  const double parse_us = TimeAlone([&] { CHECK(!parse().inputs.empty()); });
  const double parse_and_resolve_us =
      TimeAlone([&] { CHECK(ivy::ResolveRequest(parse(), model.folder(), config).ok()); });
  const double tokenize_us =
      TimeAlone([&] { CHECK(model.pipeline().Encode(kText, {}, scratch).ok()); });
  const double render_us = TimeAlone([&] {
    answer.clear();
    ivy::api::kOpenAiEmbeddings.render({.rows = rows,
                                        .model = model.folder().name,
                                        .encoding = ivy::api::VectorEncoding::kBase64,
                                        .request_id = "0123456789abcdef"},
                                       answer);
  });
  return fmt::format(
      R"({{"parse JSON": {:.3f}, "resolve": {:.3f}, "tokenize": {:.3f}, "write JSON": {:.3f}}})",
      parse_us, std::max(0.0, parse_and_resolve_us - parse_us), tokenize_us, render_us);
}

Status Run(const std::string& path, uint16_t echo_port, int num_requests) {
  const SystemClock clock;
  Metrics metrics;
  NullModel::Hooks hooks;
  hooks.make_engine = [] { return std::make_unique<MarkingEngine>(); };
  hooks.wrap_replica = [](std::unique_ptr<ivy::Replica> replica) {
    return std::make_unique<MarkingReplica>(std::move(replica));
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<NullModel> model,
                   NullModel::Load(path, hooks, metrics, clock));
  ivy::Config config;
  config.port = 0;
  ivy::ServedModel served;
  served.folder = model->folder();
  served.name = served.folder.name;
  const std::chrono::milliseconds timeout(config.request_timeout_ms);
  served.encode = [&model, timeout](ivy::EncodeRequest request) {
    return EncodeMarked(*model, timeout, std::move(request));
  };
  std::vector<ivy::ServedModel> models;
  models.push_back(std::move(served));
  ASSIGN_OR_RETURN(const std::unique_ptr<ivy::Gateway> gateway,
                   ivy::Gateway::Create(config, std::move(models), metrics));
  RETURN_IF_ERROR(gateway->Start());
  gateway->SetReady(model->folder().name, {});
  {
    Client ours(gateway->port());
    Client echo(echo_port);
    std::array<std::vector<double>, kNumMarks> stages;  // [i]: from mark i to the next one
    std::vector<double> totals;
    std::vector<double> echoes;
    for (int i = 0; i < num_requests + kTurn; ++i) {
      ours.Ask();
      if (i >= kTurn) {  // the first turn warms up
        for (size_t mark = 0; mark + 1 < kNumMarks; ++mark) {
          stages[mark].push_back(Between(static_cast<Mark>(mark), static_cast<Mark>(mark + 1)));
        }
        totals.push_back(Between(kSent, kRead));
      }
      for (int j = 0; i % kTurn == 0 && j < kTurn; ++j) {
        echo.Ask();
        echoes.push_back(Between(kSent, kRead));
      }
    }
    std::cout << fmt::format(R"({{"requests": {}, "total_us": {:.2f}, "echo_us": {:.2f}, )",
                             num_requests, Median(totals), Median(echoes));
    std::cout << R"("stages_us": [)";
    for (size_t mark = 0; mark + 1 < kNumMarks; ++mark) {
      std::cout << fmt::format("{}{:.2f}", mark == 0 ? "" : ", ", Median(stages[mark]));
    }
    std::cout << fmt::format(R"(], "alone_us": {}}})", TimeFunctions(*model, config)) << "\n"
              << std::flush;
  }
  gateway->Drain();
  gateway->Stop();
  return {};
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  const auto read = [](std::string_view text, auto& number) {
    return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  };
  uint16_t echo_port = 0;
  int num_requests = 0;
  if (argc != 4 || !read(argv[2], echo_port) || !read(argv[3], num_requests) || num_requests < 1 ||
      !bouquet::StartLogging("warning", "text").ok()) {
    std::cerr << "usage: ivy_stages MODEL ECHO_PORT REQUESTS\n";
    return 2;
  }
  const bouquet::Status status = bouquet::bench::Run(argv[1], echo_port, num_requests);
  if (!status.ok()) {
    std::cerr << "ivy_stages: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
