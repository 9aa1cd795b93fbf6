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

  Result<ivy::EngineFacts> Load(model::ModelFolder folder,
                                const std::stop_token& /*stop*/) override {
    const ivy::Config& config = flags_.gateway.config;
    LocalModelOptions options;
    options.engine = flags_.engine;
    options.max_input_tokens = static_cast<int32_t>(config.max_input_tokens);
    options.max_tokens_per_request = config.max_tokens_per_request;
    options.max_queue = std::chrono::milliseconds(config.max_queue_ms);
    options.text_workers = flags_.gateway.text_workers;
    ASSIGN_OR_RETURN(model_, LocalModel::Load(std::move(folder), options, metrics_, clock_));
    const tulip::CoreDescription& core = model_->core().Describe();
    return ivy::EngineFacts{.device = core.engine.device,
                            .dtype = core.engine.dtype,
                            .step_tokens = core.step_tokens,
                            .max_batch_sequences = core.max_batch_sequences,
                            .numerics = core.engine.numerics_fingerprint};
  }

  const char* loading_reason() const override { return "loading the model"; }
  ivy::Encoder& encoder() override { return model_->encoder(); }

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

ExitCode RunServe(const ServeFlags& flags) {
  Metrics metrics;
  EngineBackend backend(flags, metrics);
  return RunGateway(flags.gateway, backend, metrics);
}

}  // namespace

RunCommand AddServeCommand(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serves a model over HTTP: OpenAI and text-embeddings-inference clients");
  flags->gateway.AddTo(*command);
  flags->engine.AddTo(*command);
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
