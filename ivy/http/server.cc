#include "ivy/http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "ivy/http/connection.h"
#include "ivy/http/server_state.h"

namespace bouquet::ivy::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kUseAwaitable = asio::as_tuple(asio::use_awaitable);
// Connections over the limit that are told so; those beyond are closed at once.
constexpr int64_t kMaxRefusals = 256;

/// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7), whatever the locale.
std::string HttpDate(std::time_t now) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/// A few looks per shortest timeout.
std::chrono::milliseconds SweepPeriod(const ServerLimits& limits) {
  const auto shortest = std::min({limits.read_timeout, limits.write_timeout, limits.idle_timeout});
  return std::clamp(shortest / 8, std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

awaitable<void> SweepRegularly(Worker& worker, const ServerState& state) {
  asio::steady_timer timer(worker.loop);
  for (;;) {
    worker.date = HttpDate(std::time(nullptr));
    SweepConnections(worker, SystemClock().Now());
    timer.expires_after(SweepPeriod(*state.limits.Current()));
    co_await timer.async_wait(kUseAwaitable);
  }
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, RouteTable routes, const ApiKeys& keys, Metrics& metrics)
      : state_(std::move(options), std::move(routes), keys, metrics) {}
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Start();
  void Stop();
  ServerState& state() { return state_; }
  uint16_t port() const { return port_; }

 private:
  Status Listen();
  awaitable<void> Accept();

  ServerState state_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<tcp::acceptor> acceptor_;
  std::vector<std::thread> threads_;
};

Status Server::Impl::Listen() {
  const ServerOptions& options = state_.options;
  asio::io_context& loop = workers_.front()->loop;
  error_code error;
  tcp::resolver resolver(loop);
  const tcp::resolver::results_type found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return InvalidArgument(
        fmt::format("cannot listen: no such host: {}: {}", options.host, error.message()), "host");
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.emplace(loop);
  acceptor_->open(endpoint.protocol(), error);
  if (!error) {
    acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    acceptor_->bind(endpoint, error);
  }
  if (!error) {
    acceptor_->listen(asio::socket_base::max_listen_connections, error);
  }
  if (error == asio::error::address_in_use) {
    return Status(StatusCode::kAlreadyExists,
                  fmt::format("the port is in use by another program: {}:{}; choose another one "
                              "with --port, 0 takes any free one",
                              options.host, options.port),
                  "port");
  }
  if (error) {
    return InvalidArgument(
        fmt::format("cannot listen on {}:{}: {}", options.host, options.port, error.message()),
        "port");
  }
  port_ = acceptor_->local_endpoint().port();
  return Status();
}

Status Server::Impl::Start() {
  CHECK(workers_.empty());
  for (int i = 0; i < std::max(state_.options.num_threads, 1); ++i) {
    workers_.push_back(std::make_unique<Worker>());
  }
  if (Status status = Listen(); !status.ok()) {
    acceptor_.reset();  // before the loop that it belongs to
    workers_.clear();
    return status;
  }
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->date = HttpDate(std::time(nullptr));
    asio::co_spawn(worker->loop, SweepRegularly(*worker, state_), asio::detached);
  }
  asio::co_spawn(workers_.front()->loop, Accept(), asio::detached);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    threads_.emplace_back([&loop = worker->loop] { loop.run(); });
  }
  return Status();
}

awaitable<void> Server::Impl::Accept() {
  asio::steady_timer pause(workers_.front()->loop);
  for (size_t next = 0;; next = (next + 1) % workers_.size()) {
    Worker& worker = *workers_[next];
    auto [error, socket] = co_await acceptor_->async_accept(worker.loop, kUseAwaitable);
    if (error) {
      // Out of file descriptors, most likely: some will be given back.
      LogWarning("cannot accept a connection: {}", error.message());
      pause.expires_after(100ms);
      co_await pause.async_wait(kUseAwaitable);
      continue;
    }
    const int64_t open = state_.connections;
    const int64_t max_connections = state_.limits.Current()->max_connections;
    if (open >= max_connections + kMaxRefusals) {
      state_.metrics.CountRefusedConnection();
      continue;
    }
    ++state_.connections;
    if (open < max_connections) {
      state_.metrics.CountConnection();
      asio::co_spawn(worker.loop, ServeConnection(std::move(socket), worker, state_),
                     asio::detached);
    } else {
      asio::co_spawn(worker.loop, RefuseConnection(std::move(socket), worker, state_),
                     asio::detached);
    }
  }
}

void Server::Impl::Stop() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->loop.stop();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  acceptor_.reset();
  workers_.clear();
}

Server::Server(ServerOptions options, RouteTable routes, const ApiKeys& keys, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(routes), keys, metrics)) {}

Server::~Server() = default;

Status Server::Start() { return impl_->Start(); }

uint16_t Server::port() const { return impl_->port(); }

void Server::SetLimits(const ServerLimits& limits) { impl_->state().limits.Replace(limits); }

void Server::RefuseNewRequests() { impl_->state().refusing = true; }

bool Server::WaitUntilIdle(std::chrono::milliseconds wait) {
  ServerState& state = impl_->state();
  std::unique_lock lock(state.idle_mutex);
  return state.idle_changed.wait_for(lock, wait, [&] { return state.exchanges == 0; });
}

void Server::Stop() { impl_->Stop(); }

void Server::PublishGauges() {
  const ServerState& state = impl_->state();
  impl_->state().metrics.SetGauges(state.connections, state.exchanges, state.body_bytes);
}

}  // namespace bouquet::ivy::http
