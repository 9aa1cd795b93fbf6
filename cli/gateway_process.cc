#include "cli/gateway_process.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cli/signals.h"
#include "ivy/gateway.h"

namespace bouquet::cli {
namespace {

ivy::ServedModel MakeServedModel(const GatewayFlags& flags, const model::ModelFolder& folder,
                                 EncodeBackend& backend) {
  ivy::ServedModel served;
  served.name = folder.name;
  served.aliases = flags.aliases;
  served.folder = folder;
  served.encode = [&backend](ivy::EncodeRequest request) {
    return backend.encoder().Encode(std::move(request));
  };
  served.progress = [&backend] { return backend.Check(); };
  return served;
}

/// Loads and announces. Ends the process when the model cannot be used: nothing was accepted yet.
void LoadModel(EncodeBackend& backend, ivy::Gateway& gateway, model::ModelFolder folder,
               const std::stop_token& stop) {
  const SystemClock clock;
  const TimePoint start = clock.Now();
  const std::string name = folder.name;
  gateway.SetLoading(name, backend.loading_reason());
  const Result<ivy::EngineFacts> facts = backend.Load(std::move(folder), stop);
  if (!facts.ok()) {
    if (facts.code() == StatusCode::kCancelled) {
      return;
    }
    Fail(ExitCode::kModel, facts.status());
    std::_Exit(static_cast<int>(ExitCode::kModel));
  }
  gateway.SetReady(name, *facts);
  LogInfo("{} is ready after {} ms: {}, {}, {} tokens a step", name,
          std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - start).count(),
          facts->device, facts->dtype, facts->step_tokens);
}

/// The signal that ends the process.
int WaitForTheEnd(ivy::Gateway& gateway, const Signals& signals) {
  for (;;) {
    const int signal = signals.Wait();
    if (signal != SIGHUP) {
      return signal;
    }
    if (const Status status = gateway.ReloadApiKeys(); status.ok()) {
      LogInfo("SIGHUP: the file of API keys was read again");
    } else {
      LogError("SIGHUP: the old API keys stay in force: {}", status.message());
    }
  }
}

}  // namespace

ExitCode RunGateway(const GatewayFlags& flags, EncodeBackend& backend, Metrics& metrics) {
  const Signals signals;
  Result<model::ModelFolder> folder = flags.OpenFolder();
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  if (const Status status = flags.CheckAgainst(*folder); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  std::vector<ivy::ServedModel> models;
  models.push_back(MakeServedModel(flags, *folder, backend));
  auto created = ivy::Gateway::Create(flags.Resolve(), std::move(models), metrics);
  if (!created.ok()) {
    return Fail(ExitCode::kUsage, created.status());
  }
  const std::unique_ptr<ivy::Gateway> gateway = std::move(created).value();
  if (const Status status = gateway->Start(); !status.ok()) {
    return Fail(ExitCode::kOutput, status);
  }
  LogInfo("listening on http://{}:{}, loading {}", flags.config.host, gateway->port(),
          folder->path.string());
  std::stop_source stop_loading;
  std::thread loading([&, token = stop_loading.get_token()]() mutable {
    LoadModel(backend, *gateway, std::move(folder).value(), token);
  });
  const int signal = WaitForTheEnd(*gateway, signals);
  LogInfo("{}: finishing what was accepted", Signals::NameOf(signal));
  signals.EndAtTheNext();
  stop_loading.request_stop();
  const bool all_answered = gateway->Drain();
  loading.join();
  gateway->Stop();
  backend.Stop();  // before the gateway goes: its executors take the last answers
  LogInfo("{}", all_answered ? "every accepted request was answered"
                             : "requests were left when --drain-timeout-ms had passed");
  return ExitCode::kOk;
}

}  // namespace bouquet::cli
