#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/gateway_flags.h"
#include "cli/gateway_process.h"
#include "cli/local_model.h"

namespace bouquet::cli {
namespace {

struct ServeFlags {
  GatewayFlags gateway;
  EngineFlags engine;
};

/// An engine in this process.
class EngineBackend final : public EncodeBackend {
 public:
  EngineBackend(const ServeFlags& flags, Metrics& metrics) : flags_(flags), metrics_(metrics) {}

  Result<ivy::EngineFacts> Load(const model::ModelFolder& folder,
                                const std::stop_token& /*stop*/) override {
    const ivy::Config& config = flags_.gateway.config;
    LocalModelOptions options;
    options.engine = flags_.engine;
    options.max_input_tokens = static_cast<int32_t>(config.max_input_tokens);
    options.max_queue = std::chrono::milliseconds(config.max_queue_ms);
    options.text_workers = flags_.gateway.text_workers;
    ASSIGN_OR_RETURN(model_, LocalModel::Load(folder, options, metrics_, clock_));
    const tulip::CoreDescription& core = model_->core().Describe();
    return ivy::EngineFacts{.device = core.engine.device,
                            .device_description = core.engine.device_description,
                            .dtype = core.engine.dtype,
                            .step_tokens = core.step_tokens,
                            .max_batch_sequences = core.max_batch_sequences,
                            .numerics = core.engine.numerics_fingerprint};
  }

  const char* loading_reason() const override { return "loading the model"; }
  Result<std::shared_ptr<ivy::Encoder>> MakeEncoder(const ivy::EncoderOptions& options,
                                                    ivy::TextSource source) override {
    return model_->MakeEncoder(options, std::move(source));
  }

  ivy::Readiness Check() const override {
    const bool overdue = model_->core().Load().overdue;
    return {!overdue, overdue ? "a step of the engine is overdue" : ""};
  }

  void Stop() override {
    if (model_ != nullptr) {
      model_->core().Stop(std::chrono::milliseconds(0));
    }
  }

 private:
  const ServeFlags& flags_;
  Metrics& metrics_;
  const SystemClock clock_;
  std::unique_ptr<LocalModel> model_;
};

Status CheckReload(const ServeFlags& running, const ServeFlags& next) {
  RETURN_IF_ERROR(running.engine.CheckReload(next.engine));
  const ivy::Config& config = running.gateway.config;
  return ivy::NeedsNoRestart(
      {{"--max-queue-ms", config.max_queue_ms == next.gateway.config.max_queue_ms}});
}

/// `flags` are parsed into once more on SIGHUP.
ExitCode RunServe(ServeFlags& flags, const ParseAgain& parse_again) {
  const ServeFlags running = flags;
  const auto read_again = [&]() -> Result<GatewayFlags> {
    flags = ServeFlags();
    RETURN_IF_ERROR(parse_again());
    RETURN_IF_ERROR(CheckReload(running, flags));
    return flags.gateway;
  };
  Metrics metrics;
  EngineBackend backend(running, metrics);
  return RunGateway(running.gateway, read_again, backend, metrics);
}

}  // namespace

RunCommand AddServeCommand(CLI::App& app, ParseAgain parse_again) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serves a model over HTTP: OpenAI and text-embeddings-inference clients");
  flags->gateway.AddTo(*command);
  flags->engine.AddTo(*command);
  command->footer(
      "SIGHUP reads the file of --config, the API keys, tokenizer files and prompts again; an "
      "error "
      "keeps\nall of them as they were.\n\n"
      "Examples:\n"
      "  bouquet serve models/all-MiniLM-L6-v2\n"
      "  bouquet serve models/all-MiniLM-L6-v2 --config bouquet.toml\n"
      "  bouquet serve models/all-MiniLM-L6-v2 --host 0.0.0.0 --port 80 --api-key-file keys.txt\n"
      "  curl -s localhost:8080/v1/embeddings -H 'content-type: application/json' \\\n"
      "    -d '{\"input\": \"hello\", \"model\": "
      "\"all-MiniLM-L6-v2\"}'");
  return [flags, parse_again = std::move(parse_again)] { return RunServe(*flags, parse_again); };
}

}  // namespace bouquet::cli
