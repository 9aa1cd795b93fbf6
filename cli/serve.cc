#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/local_model.h"
#include "ivy/gateway.h"

namespace bouquet::cli {
namespace {

struct ServeFlags {
  std::string model;
  std::string name;
  std::vector<std::string> aliases;
  std::string over_length = "dialect";
  std::string token_input = "accept";
  std::string special_tokens_in_text = "parse";
  int32_t text_workers = 0;
  ivy::Config config;
  EngineFlags engine;
};

/// SIGTERM and SIGINT end the server, SIGHUP reads the keys again. Blocked before any thread
/// starts, so that only the thread that waits here gets them.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&set_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  int Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_;
};

/// The model that is being loaded while the gateway already listens. Written by the loading thread,
/// read by handlers only after the gateway was told that it is ready.
struct Server {
  Metrics metrics;
  SystemClock clock;
  std::unique_ptr<LocalModel> model;
  std::unique_ptr<ivy::Gateway> gateway;
};

ivy::ServedModel MakeServedModel(Server& server, const ServeFlags& flags,
                                 const model::ModelFolder& folder) {
  ivy::ServedModel served;
  served.name = folder.name;
  served.aliases = flags.aliases;
  served.folder = folder;
  served.encode = [&server](ivy::EncodeRequest request) {
    return server.model->encoder().Encode(std::move(request));
  };
  served.progress = [&server] {
    const tulip::CoreLoad load = server.model->core().Load();
    return ivy::Readiness{!load.overdue, load.overdue ? "a step of the engine is overdue" : ""};
  };
  return served;
}

/// Loads and announces. Ends the process when the model cannot be used: nothing was accepted yet.
void LoadModel(Server& server, const ServeFlags& flags, model::ModelFolder folder) {
  const TimePoint start = server.clock.Now();
  const std::string name = folder.name;
  LocalModelOptions options;
  options.engine = flags.engine;
  options.max_input_tokens = static_cast<int32_t>(flags.config.max_input_tokens);
  options.max_tokens_per_request = flags.config.max_tokens_per_request;
  options.max_queue = std::chrono::milliseconds(flags.config.max_queue_ms);
  options.text_workers = flags.text_workers;
  server.gateway->SetLoading(name, "loading the model");
  auto model = LocalModel::Load(std::move(folder), options, server.metrics, server.clock);
  if (!model.ok()) {
    Fail(ExitCode::kModel, model.status());
    std::_Exit(static_cast<int>(ExitCode::kModel));
  }
  server.model = std::move(model).value();
  const tulip::CoreDescription& core = server.model->core().Describe();
  server.gateway->SetReady(name, {.device = core.engine.device,
                                  .dtype = core.engine.dtype,
                                  .step_tokens = core.step_tokens,
                                  .max_batch_sequences = core.max_batch_sequences,
                                  .numerics = core.engine.numerics_fingerprint});
  LogInfo("{} is ready after {} ms: {}, {}, {} tokens a step, inputs up to {} tokens", name,
          std::chrono::duration_cast<std::chrono::milliseconds>(server.clock.Now() - start).count(),
          core.engine.device_description, core.engine.dtype, core.step_tokens,
          core.max_input_tokens);
}

/// Until a signal ends it. `loading` is joined before anything that it uses is let go.
ExitCode ServeUntilSignal(Server& server, const Signals& signals, std::thread& loading) {
  int signal = signals.Wait();
  while (signal == SIGHUP) {
    const Status status = server.gateway->ReloadApiKeys();
    if (status.ok()) {
      LogInfo("SIGHUP: the file of API keys was read again");
    } else {
      LogError("SIGHUP: the old API keys stay in force: {}", status.message());
    }
    signal = signals.Wait();
  }
  LogInfo("{}: finishing what was accepted", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  // A second signal does not wait.
  std::thread([&signals] {
    signals.Wait();
    std::_Exit(static_cast<int>(ExitCode::kInterrupted));
  }).detach();
  const bool all_answered = server.gateway->Drain();
  loading.join();
  server.gateway->Stop();
  server.model->core().Stop(std::chrono::milliseconds(0));
  LogInfo("{}", all_answered ? "every accepted request was answered"
                             : "requests were left when --drain-timeout-ms had passed");
  return ExitCode::kOk;
}

ExitCode RunServe(ServeFlags flags) {
  const Signals signals;
  flags.config.version = BOUQUET_VERSION;
  flags.config.accept_token_ids = flags.token_input == "accept";
  flags.config.parse_special_in_text = flags.special_tokens_in_text == "parse";
  flags.config.over_length = flags.over_length == "error"      ? ivy::OverLengthPolicy::kError
                             : flags.over_length == "truncate" ? ivy::OverLengthPolicy::kTruncate
                                                               : ivy::OverLengthPolicy::kDialect;
  Result<model::ModelFolder> folder = model::ModelFolder::Open(flags.model);
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  if (!flags.name.empty()) {
    folder->name = flags.name;
  }
  if (flags.config.max_input_tokens > folder->max_input_tokens) {
    return Fail(
        ExitCode::kUsage,
        InvalidArgument(fmt::format(
            "--max-input-tokens can only lower the model's maximum: {}, the model allows {}",
            flags.config.max_input_tokens, folder->max_input_tokens)));
  }
  Server server;
  std::vector<ivy::ServedModel> models;
  models.push_back(MakeServedModel(server, flags, *folder));
  auto gateway = ivy::Gateway::Create(flags.config, std::move(models), server.metrics);
  if (!gateway.ok()) {
    return Fail(ExitCode::kUsage, gateway.status());
  }
  server.gateway = std::move(gateway).value();
  if (const Status status = server.gateway->Start(); !status.ok()) {
    return Fail(ExitCode::kOutput, status);
  }
  LogInfo("listening on http://{}:{}, loading {}", flags.config.host, server.gateway->port(),
          folder->path.string());
  std::thread loading(LoadModel, std::ref(server), std::cref(flags), std::move(folder).value());
  return ServeUntilSignal(server, signals, loading);
}

void AddLimits(CLI::App& command, ivy::Config& config) {
  AddFlag(command, "--max-body-bytes", config.max_body_bytes, "of a request; beyond it 413");
  AddFlag(command, "--max-header-bytes", config.max_header_bytes, "of a request; beyond it 431");
  AddFlag(command, "--max-buffered-bytes", config.max_buffered_bytes,
          "bodies held at once, all connections together; beyond it 429");
  AddFlag(command, "--max-connections", config.max_connections, "open at once");
  AddFlag(command, "--max-concurrent-requests", config.max_concurrent_requests,
          "in progress at once; beyond it 429");
  AddFlag(command, "--max-json-depth", config.max_json_depth, "of a body; beyond it 400");
  AddFlag(command, "--max-inputs-per-request", config.max_inputs_per_request, "beyond it 413");
  AddFlag(command, "--max-tokens-per-request", config.max_tokens_per_request, "beyond it 413");
  AddFlag(command, "--max-input-tokens", config.max_input_tokens,
          "longest input; 0: the model's maximum, which this can only lower");
  AddFlag(command, "--max-queue-ms", config.max_queue_ms,
          "work that may wait, in time at the measured speed; beyond it 429 with Retry-After");
  AddFlag(command, "--read-timeout-ms", config.read_timeout_ms,
          "from the first byte of a request to its last; beyond it 408");
  AddFlag(command, "--write-timeout-ms", config.write_timeout_ms, "for a client to take an answer");
  AddFlag(command, "--idle-timeout-ms", config.idle_timeout_ms, "between requests of a connection");
  AddFlag(command, "--request-timeout-ms", config.request_timeout_ms,
          "upper bound of any deadline; beyond it 504");
  AddFlag(command, "--drain-delay-ms", config.drain_delay_ms,
          "after SIGTERM: from not ready to refusing new requests");
  AddFlag(command, "--drain-timeout-ms", config.drain_timeout_ms,
          "after SIGTERM: for the requests under way");
}

void AddBehaviour(CLI::App& command, ServeFlags& flags) {
  AddFlag(command, "--over-length", flags.over_length,
          "inputs over the model's maximum, where a request does not say: error, truncate, or "
          "dialect: as the dialect's own server does (OpenAI error, TEI truncate)")
      ->check(CLI::IsMember({"dialect", "error", "truncate"}));
  AddFlag(command, "--token-input", flags.token_input, "token ids as inputs: accept or reject")
      ->check(CLI::IsMember({"accept", "reject"}));
  AddFlag(
      command, "--special-tokens-in-text", flags.special_tokens_in_text,
      "parse: \"[SEP]\" in a text is the special token, as the reference reads it; literal: text")
      ->check(CLI::IsMember({"parse", "literal"}));
  AddFlag(command, "--strict-fields", flags.config.strict_fields,
          "true: a field that is not known is an error; false: it is ignored");
  AddFlag(command, "--api-key-file", flags.config.api_key_file,
          "one key a line, read again on SIGHUP; without keys everything is open");
  AddFlag(command, "--api-keys", flags.config.api_keys, "keys, separated by commas");
  AddFlag(command, "--protect-metrics", flags.config.protect_metrics,
          "true: /metrics needs a key too");
  AddFlag(command, "--cors-allow-origin", flags.config.cors_allow_origins,
          "origins whose pages may call; * for any");
}

}  // namespace

RunCommand AddServeCommand(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serves a model over HTTP: OpenAI and text-embeddings-inference clients");
  command->add_option("MODEL", flags->model, "model folder")->required();
  AddFlag(*command, "--name", flags->name,
          "the model's name in requests; empty: the folder's name");
  AddFlag(*command, "--alias", flags->aliases, "further names that requests may use");
  AddFlag(*command, "--host", flags->config.host, "address to listen on");
  AddFlag(*command, "--port", flags->config.port, "0: any free one, told at start")
      ->check(CLI::Range(0, 65535));
  AddFlag(*command, "--http-threads", flags->config.http_threads, "threads of the gateway");
  AddFlag(*command, "--text-workers", flags->text_workers,
          "threads that tokenize long texts; 0: one for every two cores")
      ->check(CLI::Range(0, 256));
  flags->engine.AddTo(*command);
  AddLimits(*command, flags->config);
  AddBehaviour(*command, *flags);
  command->footer(
      "Examples:\n"
      "  bouquet serve models/all-MiniLM-L6-v2\n"
      "  bouquet serve models/all-MiniLM-L6-v2 --host 0.0.0.0 --port 80 --api-key-file keys.txt\n"
      "  curl -s localhost:8080/v1/embeddings -H 'content-type: application/json' \\\n"
      "    -d '{\"input\": \"hello\", \"model\": "
      "\"all-MiniLM-L6-v2\"}'");
  return [flags] { return RunServe(*flags); };
}

}  // namespace bouquet::cli
