#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cli/command.h"
#include "cli/core_start.h"
#include "cli/engine_flags.h"
#include "cli/metrics_server.h"
#include "cli/signals.h"
#include "model/model_folder.h"
#include "tulip/core.h"
#include "tulip/server.h"

namespace bouquet::cli {
namespace {

struct TulipFlags {
  std::string model;
  std::string name;
  std::vector<std::string> listen{"127.0.0.1:50051"};
  int32_t max_input_tokens = 0;
  int64_t max_queue_ms = 2000;
  int64_t max_message_bytes = 16 << 20;
  int64_t drain_timeout_ms = 30'000;
  std::string metrics_listen;
  EngineFlags engine;
};

/// Of a server that could not be started.
ExitCode ExitOf(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ? ExitCode::kUsage : ExitCode::kOutput;
}

ExitCode RunTulip(const TulipFlags& flags) {
  const Signals signals;  // before gRPC's threads
  Result<model::ModelFolder> folder = model::ModelFolder::Open(flags.model);
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  if (!flags.name.empty()) {
    folder->name = flags.name;
  }
  if (flags.max_input_tokens > folder->max_input_tokens) {
    return Fail(
        ExitCode::kUsage,
        InvalidArgument(fmt::format(
            "--max-input-tokens can only lower the model's maximum: {}, the model allows {}",
            flags.max_input_tokens, folder->max_input_tokens)));
  }
  const SystemClock clock;
  Metrics metrics;
  const TimePoint start = clock.Now();
  std::unique_ptr<tulip::Core> core;  // outlives the server
  auto server = tulip::Server::Start({.listen = flags.listen,
                                      .model_name = folder->name,
                                      .software_version = BOUQUET_VERSION,
                                      .max_message_bytes = flags.max_message_bytes},
                                     clock);
  if (!server.ok()) {
    return Fail(ExitOf(server.status()), server.status());
  }
  for (size_t i = 0; i < flags.listen.size(); ++i) {
    const int port = (*server)->ports()[i];
    LogInfo("listening on {}{}, loading {}", flags.listen[i],
            port == 0 ? "" : fmt::format(" (port {})", port), folder->path.string());
  }
  std::unique_ptr<MetricsServer> metrics_server;
  if (!flags.metrics_listen.empty()) {
    auto started = MetricsServer::Start(
        flags.metrics_listen, [&served = **server] { return served.IsServing(); }, metrics);
    if (!started.ok()) {
      return Fail(ExitOf(started.status()), started.status());
    }
    metrics_server = std::move(started).value();
    LogInfo("metrics on port {}", metrics_server->port());
  }
  auto started = StartCore(*folder, flags.engine, flags.max_input_tokens,
                           std::chrono::milliseconds(flags.max_queue_ms), metrics, clock);
  if (!started.ok()) {
    return Fail(ExitOfLoading(started.status()), started.status());
  }
  core = std::move(started).value();
  (*server)->SetReady(*core);
  const tulip::CoreDescription& description = core->Describe();
  LogInfo("{} is ready after {} ms: {}, {}, {} tokens a step, inputs up to {} tokens", folder->name,
          std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - start).count(),
          description.engine.device_description, description.engine.dtype, description.step_tokens,
          description.max_input_tokens);
  int signal = signals.Wait();
  while (signal == SIGHUP) {
    LogInfo("SIGHUP: there is nothing to read again; tokenizer and prompts are the gateway's");
    signal = signals.Wait();
  }
  LogInfo("{}: finishing what was accepted", Signals::NameOf(signal));
  signals.EndAtTheNext();
  (*server)->Drain(std::chrono::milliseconds(flags.drain_timeout_ms));
  LogInfo("stopped");
  return ExitCode::kOk;
}

}  // namespace

RunCommand AddTulipCommand(CLI::App& app) {
  auto flags = std::make_shared<TulipFlags>();
  CLI::App* command = app.add_subcommand(
      "tulip", "Serves a model over gRPC to gateways: tokens in, rows out (an inference server)");
  command->add_option("MODEL", flags->model, "model folder")->required();
  AddFlag(*command, "--name", flags->name, "the model's name; empty: the folder's name");
  AddFlag(*command, "--listen", flags->listen,
          "HOST:PORT (port 0: any free one) or unix:PATH; several are possible");
  AddFlag(*command, "--max-input-tokens", flags->max_input_tokens,
          "longest input; 0: the model's maximum, which this can only lower")
      ->check(CLI::NonNegativeNumber);
  AddFlag(*command, "--max-queue-ms", flags->max_queue_ms,
          "work that may wait, in time at the measured speed; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(int64_t{1}, int64_t{3'600'000}));
  AddFlag(*command, "--max-message-bytes", flags->max_message_bytes, "of one request")
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 30));
  AddFlag(*command, "--drain-timeout-ms", flags->drain_timeout_ms,
          "after SIGTERM: for the requests under way")
      ->check(CLI::Range(int64_t{0}, int64_t{3'600'000}));
  AddFlag(*command, "--metrics-listen", flags->metrics_listen,
          "HOST:PORT for GET /metrics, /health/live and /health/ready; empty: none");
  flags->engine.AddTo(*command);
  command->footer(
      "Health: grpc.health.v1.Health for \"\" and \"tulip.v1.Inference\". Reflection is on.\n\n"
      "Examples:\n"
      "  bouquet tulip models/all-MiniLM-L6-v2 --listen 0.0.0.0:50051\n"
      "  bouquet tulip models/all-MiniLM-L6-v2 --listen unix:/run/tulip.sock --threads 8");
  return [flags] { return RunTulip(*flags); };
}

}  // namespace bouquet::cli
