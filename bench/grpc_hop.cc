// What does the way over gRPC add to a chunk, against a bare gRPC echo of the same sizes? Three
// ways take turns: a gRPC replica (Ivy's client, Tulip's server in a process of its own, an engine
// that answers at once), the same core and engine in this process, and the echo. The hop is the
// first less the second.
//
//   grpc_hop ROUNDS MILLISECONDS
//
// MILLISECONDS is the length of one measurement. Writes one JSON object per transport, cell, number
// of chunks under way and round; bench/service_items.py reads them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "ivy/dispatch/grpc_message.h"
#include "ivy/dispatch/grpc_replica.h"
#include "ivy/dispatch/in_process_replica.h"
#include "proto/tulip/v1/inference.grpc.pb.h"
#include "testing/null_step_engine.h"
#include "tulip/core.h"
#include "tulip/server.h"

namespace bouquet::bench {
namespace {

namespace v1 = ::tulip::v1;
using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr const char* kModelName = "null";

struct Cell {
  const char* name;
  size_t num_sequences;
  size_t tokens;  // of each
};
constexpr std::array kCells = {Cell{"1 x 16", 1, 16}, Cell{"32 x 128", 32, 128},
                               Cell{"1 x 512", 1, 512}, Cell{"128 x 128", 128, 128}};
/// One at a time with a pause in between every call starts from rest, as a lone query does. Without
/// pause the next one follows at once.
struct Load {
  size_t under_way;
  std::chrono::microseconds pause;
};
constexpr std::array kLoads = {Load{1, std::chrono::microseconds(500)}, Load{1, {}}, Load{8, {}},
                               Load{64, {}}};
constexpr std::array<const char*, 2> kTransports = {"tcp", "unix"};

std::string SocketPath(const char* service, pid_t parent) {
  return fmt::format("/tmp/bouquet-grpc-hop-{}-{}.sock", parent, service);
}

std::unique_ptr<tulip::Core> StartNullCore(Metrics& metrics, const Clock& clock) {
  auto core = tulip::Core::Start(
      std::unique_ptr<tulip::StepEngine>(std::make_unique<testing::NullStepEngine>()),
      {.model_name = kModelName, .step_tokens = 4096}, metrics, clock);
  return std::move(core).value();
}

/// Answers with as many bytes as `dimensions` of the request says.
class EchoService final : public v1::Inference::CallbackService {
 public:
  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override {
    response->add_blocks()->mutable_data()->resize(request->dimensions());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

struct Ports {
  int tulip = 0;
  int echo = 0;
};

/// Of this process and the servers', so far. A busy machine disturbs it less than it does the
/// clock.
Seconds CpuTime(pid_t servers) {
  clockid_t servers_clock = 0;
  timespec own{};
  timespec theirs{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  if (clock_getcpuclockid(servers, &servers_clock) == 0) {
    clock_gettime(servers_clock, &theirs);
  }
  const auto seconds = [](const timespec& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  return seconds(own) + seconds(theirs);
}

/// The child process: both servers, until the parent is gone.
int RunServers(pid_t parent, int ports_out, int end_in) {
  const SystemClock clock;
  Metrics metrics;
  const std::unique_ptr<tulip::Core> core = StartNullCore(metrics, clock);
  auto server =
      tulip::Server::Start({.listen = {"127.0.0.1:0", "unix:" + SocketPath("tulip", parent)},
                            .model_name = kModelName,
                            .max_message_bytes = 16 << 20},
                           clock);
  if (!server.ok()) {
    std::cerr << "grpc_hop: " << server.status().ToString() << '\n';
    return 1;
  }
  (*server)->SetReady(*core);
  EchoService service;
  Ports ports{.tulip = (*server)->ports()[0]};
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &ports.echo);
  builder.AddListeningPort("unix:" + SocketPath("echo", parent), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> echo = builder.BuildAndStart();
  if (echo == nullptr || write(ports_out, &ports, sizeof(ports)) != sizeof(ports)) {
    return 1;
  }
  char ignored = 0;
  (void)!read(end_in, &ignored, 1);
  echo->Shutdown(std::chrono::system_clock::now());
  return 0;
}

/// One measurement.
struct Timing {
  double p50_us = 0;
  double each_us = 0;  // wall time over requests: what one costs when the machine is full
  double cpu_us = 0;   // of both processes, over requests
};

/// From its making to Finish.
class Stopwatch {
 public:
  explicit Stopwatch(pid_t servers) : servers_(servers) {}

  TimePoint begin() const { return begin_; }
  Timing Finish(const std::vector<std::vector<double>>& latencies) const {
    const Seconds elapsed = steady_clock::now() - begin_;
    const Seconds cpu = CpuTime(servers_) - cpu_begin_;

    std::vector<double> all;
    for (const std::vector<double>& some : latencies) {
      all.insert(all.end(), some.begin(), some.end());
    }
    const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    const double per_request = 1e6 / static_cast<double>(all.size());
    return {*middle, elapsed.count() * per_request, cpu.count() * per_request};
  }

 private:
  const pid_t servers_;
  const Seconds cpu_begin_ = CpuTime(servers_);
  const TimePoint begin_ = steady_clock::now();
};

double Microseconds(steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

struct Plan {
  pid_t servers = 0;
  int rounds = 0;
  steady_clock::duration duration{};  // of one measurement
};

ivy::Chunk MakeChunk(const Cell& cell) {
  ivy::Chunk chunk;
  chunk.sequences.assign(cell.num_sequences, {.ids = std::vector<int32_t>(cell.tokens, 20'101)});
  chunk.deadline = Deadline::After(steady_clock::now(), std::chrono::seconds(30));
  chunk.request_id = "0123456789abcdef";
  return chunk;
}

boost::asio::awaitable<void> SubmitUntil(ivy::Replica& replica, const Cell& cell, const Load& load,
                                         TimePoint end, std::vector<double>& latencies) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  while (steady_clock::now() < end) {
    if (load.pause.count() > 0) {
      timer.expires_after(load.pause);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    ivy::Chunk chunk = MakeChunk(cell);
    const TimePoint begin = steady_clock::now();
    const auto rows = co_await replica.Submit(std::move(chunk));
    latencies.push_back(Microseconds(steady_clock::now() - begin));
    if (!rows.ok() || rows->values.size() != cell.num_sequences * rows->dimensions) {
      std::cerr << "grpc_hop: a chunk failed: " << rows.status().ToString() << '\n';
      std::exit(1);
    }
  }
}

Timing TimeReplica(ivy::Replica& replica, const Cell& cell, const Load& load, const Plan& plan) {
  boost::asio::io_context context(1);
  std::vector<std::vector<double>> latencies(load.under_way);
  const Stopwatch stopwatch(plan.servers);
  const TimePoint end = stopwatch.begin() + plan.duration;
  for (std::vector<double>& own : latencies) {
    boost::asio::co_spawn(context, SubmitUntil(replica, cell, load, end, own),
                          [](const std::exception_ptr& error) {
                            if (error != nullptr) {
                              std::rethrow_exception(error);
                            }
                          });
  }
  context.run();
  return stopwatch.Finish(latencies);
}

struct Sizes {
  size_t request = 0;  // bytes on the wire
  size_t response = 0;
};

/// Calls one after the other, each from the callback of the one before.
class EchoChain {
 public:
  EchoChain(v1::Inference::Stub& stub, const Sizes& sizes, TimePoint end) : stub_(stub), end_(end) {
    request_.mutable_token_type_ids()->resize(sizes.request);
    request_.set_dimensions(static_cast<uint32_t>(sizes.response));
  }

  /// Goes on until `end`; at least one call.
  void Start() {
    call_ = std::make_unique<Call>();
    begin_ = steady_clock::now();
    stub_.async()->Encode(&call_->context, &request_, &call_->response,
                          [this](const grpc::Status& status) { Ended(status); });
  }
  void Wait() { ended_.acquire(); }
  const std::vector<double>& latencies() const { return latencies_; }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::EncodeResponse response;
  };

  void Ended(const grpc::Status& status) {
    const TimePoint now = steady_clock::now();
    latencies_.push_back(Microseconds(now - begin_));
    if (!status.ok()) {
      std::cerr << "grpc_hop: an echo failed: " << status.error_message() << '\n';
      std::exit(1);
    }
    if (now < end_) {
      Start();
    } else {
      ended_.release();
    }
  }

  v1::Inference::Stub& stub_;
  const TimePoint end_;
  v1::EncodeRequest request_;
  std::unique_ptr<Call> call_;
  TimePoint begin_;
  std::vector<double> latencies_;
  std::binary_semaphore ended_{0};
};

Timing TimeEcho(v1::Inference::Stub& stub, const Sizes& sizes, const Load& load, const Plan& plan) {
  const Stopwatch stopwatch(plan.servers);
  const TimePoint end = stopwatch.begin() + plan.duration;
  std::vector<std::vector<double>> latencies;
  if (load.pause.count() > 0) {
    EchoChain single(stub, sizes, TimePoint::min());
    while (steady_clock::now() < end) {
      std::this_thread::sleep_for(load.pause);
      single.Start();
      single.Wait();
    }
    return stopwatch.Finish({single.latencies()});
  }
  std::vector<std::unique_ptr<EchoChain>> chains;
  for (size_t i = 0; i < load.under_way; ++i) {
    chains.push_back(std::make_unique<EchoChain>(stub, sizes, end));
    chains.back()->Start();
  }
  for (const std::unique_ptr<EchoChain>& chain : chains) {
    chain->Wait();
    latencies.push_back(chain->latencies());
  }
  return stopwatch.Finish(latencies);
}

/// The replica, and the echo beside it.
struct Target {
  const char* transport;
  std::unique_ptr<ivy::GrpcReplica> replica;
  std::unique_ptr<v1::Inference::Stub> tulip;
  std::unique_ptr<v1::Inference::Stub> echo;
};

std::unique_ptr<v1::Inference::Stub> StubOf(const std::string& address) {
  return v1::Inference::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

Target Connect(const char* transport, const Ports& ports, Metrics& metrics, const Clock& clock) {
  const bool tcp = std::string_view(transport) == "tcp";
  const std::string tulip =
      tcp ? fmt::format("127.0.0.1:{}", ports.tulip) : "unix:" + SocketPath("tulip", getpid());
  const std::string echo =
      tcp ? fmt::format("127.0.0.1:{}", ports.echo) : "unix:" + SocketPath("echo", getpid());
  Target target{transport,
                std::make_unique<ivy::GrpcReplica>(
                    ivy::GrpcReplicaOptions{.address = tulip},
                    [](const ivy::ReplicaDescription&) { return Status(); }, metrics, clock),
                StubOf(tulip), StubOf(echo)};
  while (!target.replica->Load().ready) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return target;
}

Sizes SizesOf(const Target& target, const Cell& cell) {
  v1::EncodeRequest request;
  ivy::WriteRequest(MakeChunk(cell), request);
  v1::EncodeResponse response;
  grpc::ClientContext context;
  const grpc::Status status = target.tulip->Encode(&context, request, &response);
  if (!status.ok()) {
    std::cerr << "grpc_hop: " << status.error_message() << '\n';
    std::exit(1);
  }
  return {request.ByteSizeLong(), response.ByteSizeLong()};
}

std::string Show(const char* way, const Timing& timing) {
  return fmt::format(R"("{0}_p50_us": {1:.2f}, "{0}_each_us": {2:.3f}, "{0}_cpu_us": {3:.3f})", way,
                     timing.p50_us, timing.each_us, timing.cpu_us);
}

void Measure(const Target& target, const Cell& cell, ivy::Replica& in_process, const Plan& plan) {
  const Sizes sizes = SizesOf(target, cell);
  for (const Load& load : kLoads) {
    const Timing grpc = TimeReplica(*target.replica, cell, load, plan);
    const Timing echo = TimeEcho(*target.echo, sizes, load, plan);
    const Timing local = TimeReplica(in_process, cell, load, plan);
    std::cout
        << fmt::format(
               R"({{"transport": "{}", "cell": "{}", "under_way": {}, "pause_us": {}, "request_bytes": {}, )"
               R"("response_bytes": {}, {}, {}, {}}})",
               target.transport, cell.name, load.under_way, load.pause.count(), sizes.request,
               sizes.response, Show("grpc", grpc), Show("echo", echo), Show("in_process", local))
        << "\n"
        << std::flush;
  }
}

void Run(const Ports& ports, const Plan& plan) {
  const SystemClock clock;
  Metrics metrics;
  const std::unique_ptr<tulip::Core> core = StartNullCore(metrics, clock);
  ivy::InProcessReplica in_process(*core);
  std::vector<Target> targets;
  for (const char* transport : kTransports) {
    targets.push_back(Connect(transport, ports, metrics, clock));
  }
  for (int round = 0; round < plan.rounds; ++round) {
    for (const Cell& cell : kCells) {
      for (const Target& target : targets) {
        Measure(target, cell, in_process, plan);
      }
    }
  }
}

template <class Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  using bouquet::bench::Plan;
  using bouquet::bench::Ports;
  Plan plan;
  int64_t milliseconds = 0;
  if (argc != 3 || !bouquet::bench::ReadNumber(argv[1], plan.rounds) ||
      !bouquet::bench::ReadNumber(argv[2], milliseconds) ||
      !bouquet::StartLogging("warning", "text").ok()) {
    std::cerr << "usage: grpc_hop ROUNDS MILLISECONDS\n";
    return 2;
  }
  plan.duration = std::chrono::milliseconds(milliseconds);
  std::array<int, 2> ports_pipe{};
  std::array<int, 2> end_pipe{};
  if (pipe(ports_pipe.data()) != 0 || pipe(end_pipe.data()) != 0) {
    return 1;
  }
  const pid_t parent = getpid();
  plan.servers = fork();  // before gRPC starts threads
  if (plan.servers == 0) {
    close(end_pipe[1]);
    return bouquet::bench::RunServers(parent, ports_pipe[1], end_pipe[0]);
  }
  close(ports_pipe[1]);
  Ports ports;
  if (read(ports_pipe[0], &ports, sizeof(ports)) != sizeof(ports)) {
    return 1;
  }
  bouquet::bench::Run(ports, plan);
  close(end_pipe[1]);
  waitpid(plan.servers, nullptr, 0);
  return 0;
}
