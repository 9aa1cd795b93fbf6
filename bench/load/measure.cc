#include "bench/load/measure.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bench/load/client_processes.h"
#include "bench/load/load_loop.h"

namespace bouquet::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kProgressEvery = std::chrono::milliseconds(200);
constexpr size_t kOpenLoopConnections = 64;  // made before the start; others as they are needed

/// One process of one round.
class Part {
 public:
  Part(const client::ClientOptions& target, const std::vector<LoadRequest>& requests, LoopPlan plan,
       ParentChannel& parent)
      : target_(target), requests_(requests), plan_(std::move(plan)), parent_(parent) {}

  Result<std::string> Run() {
    PrepareProcess();
    ASSIGN_OR_RETURN(client_, client::CreateEmbedClient(context_.get_executor(), target_));
    RETURN_IF_ERROR(Connect());
    LoadLoop loop(*client_, requests_, plan_);
    asio::signal_set signals(context_, SIGINT, SIGTERM);
    signals.async_wait([&](const error_code& error, int /*signal*/) {
      if (!error) {
        IgnoreFurtherSignals();
        loop.Interrupt();
        context_.stop();
      }
    });
    if (!parent_.WaitForStart()) {
      return Cancelled("interrupted before the start");
    }
    asio::steady_timer progress(context_);
    ReportFrom(loop, progress);
    std::exception_ptr failure;
    asio::co_spawn(context_, loop.Run(), [&](const std::exception_ptr& error) {
      failure = error;
      ended_ = true;
      signals.cancel();
      progress.cancel();
    });
    context_.run();
    if (failure != nullptr) {
      return Internal("the load loop ended unexpectedly");
    }
    return WriteTally(loop.tally());
  }

 private:
  /// Ctrl-C comes from the terminal and from the parent; the second must not end the process before
  /// its result is out. Blocked, since what the signal set leaves behind is the deadly default.
  static void IgnoreFurtherSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  }

  static void PrepareProcess() {
    prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds; the usual 50 µs would be in every sending time
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
      files.rlim_cur = files.rlim_max;  // a connection per request under way
      setrlimit(RLIMIT_NOFILE, &files);
    }
  }

  Status Connect() {
    const size_t count =
        plan_.arrivals ? std::min(plan_.in_flight, kOpenLoopConnections) : plan_.in_flight;
    Status status;
    asio::co_spawn(
        context_, client_->Connect(count), [&](const std::exception_ptr& error, Status result) {
          status = error == nullptr ? std::move(result) : Internal("connecting ended unexpectedly");
        });
    context_.run();
    context_.restart();
    return status;
  }

  void ReportFrom(const LoadLoop& loop, asio::steady_timer& timer) {
    timer.expires_after(kProgressEvery);
    timer.async_wait([this, &loop, &timer](const error_code& error) {
      // A timer that has fired already cannot be cancelled, hence the flag.
      if (!error && !ended_) {
        parent_.ReportProgress(loop.num_answered());
        ReportFrom(loop, timer);
      }
    });
  }

  const client::ClientOptions& target_;
  const std::vector<LoadRequest>& requests_;
  const LoopPlan plan_;
  ParentChannel& parent_;
  asio::io_context context_{1};
  std::unique_ptr<client::EmbedClient> client_;  // goes before the context
  bool ended_ = false;
};

LoopPlan PartOf(const RowPlan& row, size_t part) {
  LoopPlan plan;
  plan.in_flight = static_cast<size_t>(row.in_flight);
  plan.duration = row.duration;
  plan.max_requests = row.max_requests;
  plan.arrivals = row.arrivals;
  plan.part = part;
  plan.num_parts = static_cast<size_t>(row.processes);
  return plan;
}

RowPlan WarmUpOf(const RowPlan& row, const MeasurePlan& plan) {
  RowPlan warm_up = row;
  warm_up.duration = plan.warm_up;
  warm_up.max_requests = plan.warm_up_requests;
  warm_up.burst.reset();
  if (warm_up.arrivals) {
    warm_up.arrivals->phases.resize(1);
    warm_up.arrivals->phases.front().duration = plan.warm_up;
  }
  return warm_up;
}

Result<Tally> RunRound(const client::ClientOptions& target, const RowPlan& row,
                       const std::vector<LoadRequest>& requests, const ClientProcessHooks& hooks) {
  const ClientWork work = [&](size_t index, ParentChannel& parent) {
    return Part(target, requests, PartOf(row, index), parent).Run();
  };
  ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                   RunClientProcesses(static_cast<size_t>(row.processes), work, hooks));
  Tally total;
  for (const std::string& line : lines) {
    ASSIGN_OR_RETURN(const Tally part, ReadTally(line));
    total.Merge(part);
  }
  return total;
}

Status NothingAnswered(const RowPlan& row, const Tally& tally) {
  return Unavailable(fmt::format("no request of the row \"{}\" was answered as asked: {}", row.name,
                                 tally.first_error.empty() ? "none was sent" : tally.first_error));
}

/// Adds rounds to `result`. kCancelled: interrupted in between.
Status MeasureRow(const MeasurePlan& plan, const MeasureHooks& hooks, RowResult& result) {
  const RowPlan& row = result.plan;
  const std::vector<LoadRequest> requests = MakeRequests(plan.inputs, row, plan.target);
  for (int32_t round = 0; round <= plan.rounds; ++round) {
    if (round == 0 && plan.warm_up.count() == 0) {
      continue;
    }
    ClientProcessHooks process_hooks{.interrupted = hooks.interrupted, .on_progress = {}};
    if (hooks.on_progress) {
      process_hooks.on_progress = [&](int64_t num_answered) {
        hooks.on_progress({row.name, round, plan.rounds, num_answered});
      };
    }
    Result<Tally> tally =
        RunRound(plan.target, round == 0 ? WarmUpOf(row, plan) : row, requests, process_hooks);
    if (!tally.ok()) {
      return tally.status();
    }
    if (!tally->complete) {
      if (round > 0) {
        result.rounds.push_back(*std::move(tally));
      }
      return Cancelled("interrupted");
    }
    if (round > 0) {
      result.rounds.push_back(*std::move(tally));
    } else if (tally->num_ok() == 0) {
      return NothingAnswered(row, *tally);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<RowResult>> MeasureRows(const MeasurePlan& plan, const MeasureHooks& hooks) {
  std::vector<RowResult> results;
  for (const RowPlan& row : plan.rows) {
    RowResult& result = results.emplace_back();
    result.plan = row;
    const Status status = MeasureRow(plan, hooks, result);
    if (status.code() == StatusCode::kCancelled) {
      result.complete = false;
      break;
    }
    RETURN_IF_ERROR(status);
  }
  return results;
}

}  // namespace bouquet::bench
