#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cli/command.h"
#include "cli/gateway_flags.h"
#include "cli/gateway_process.h"
#include "cli/text_source.h"
#include "ivy/dispatch/grpc_replica.h"
#include "ivy/dispatch/replica_pool.h"

namespace bouquet::cli {
namespace {

struct IvyFlags {
  GatewayFlags gateway;
  std::vector<std::string> replicas;
};

/// Inference servers behind a network.
class ReplicasBackend final : public EncodeBackend {
 public:
  ReplicasBackend(const IvyFlags& flags, Metrics& metrics) : flags_(flags), metrics_(metrics) {}

  Result<ivy::EngineFacts> Load(const model::ModelFolder& folder,
                                const std::stop_token& stop) override {
    stage_ = std::make_unique<ivy::TokenizeStage>(TokenizeOptionsOf(flags_.gateway.text_workers),
                                                  metrics_, folder.name, clock_);
    pool_ = std::make_unique<ivy::ReplicaPool>(folder.identity, folder.name, metrics_);
    for (const std::string& address : flags_.replicas) {
      pool_->Add(std::make_unique<ivy::GrpcReplica>(
          ivy::GrpcReplicaOptions{.address = address},
          [pool = pool_.get()](const ivy::ReplicaDescription& replica) {
            return pool->Admit(replica);
          },
          metrics_, clock_));
    }
    if (!pool_->WaitForModel(stop)) {
      return Cancelled("stopped before a replica was found");
    }
    const ivy::ReplicaDescription& model = pool_->Describe();
    return ivy::EngineFacts{.device = model.device,
                            .device_description = model.device_description,
                            .dtype = model.dtype,
                            .step_tokens = model.step_tokens,
                            .max_batch_sequences = model.max_batch_sequences,
                            .numerics = model.numerics_fingerprint};
  }

  const char* loading_reason() const override { return "no replica has been found yet"; }
  Result<std::shared_ptr<ivy::Encoder>> MakeEncoder(const ivy::EncoderOptions& options,
                                                    ivy::TextSource source) override {
    return ivy::Encoder::Create(options, std::move(source), *stage_, *pool_);
  }

  ivy::Readiness Check() const override {
    ivy::ReplicaLoad load = pool_->Load();
    return {load.ready, std::move(load.reason_unready), pool_->num_replicas(), pool_->num_ready()};
  }

  void Stop() override { pool_.reset(); }

 private:
  const IvyFlags& flags_;
  Metrics& metrics_;
  const SystemClock clock_;
  std::unique_ptr<ivy::TokenizeStage> stage_;
  std::unique_ptr<ivy::ReplicaPool> pool_;
};

/// `flags` are parsed into once more on SIGHUP.
ExitCode RunIvy(IvyFlags& flags, const ParseAgain& parse_again) {
  for (const std::string& replica : flags.replicas) {
    const Result<Address> address = ParseAddress(replica, "--replica");
    if (!address.ok()) {
      return Fail(ExitCode::kUsage, address.status());
    }
    if (!address->is_unix() && address->port == 0) {
      return Fail(ExitCode::kUsage,
                  InvalidArgument("--replica must have a port of 1..65535: " + replica));
    }
  }
  const IvyFlags running = flags;
  const auto read_again = [&]() -> Result<GatewayFlags> {
    flags = IvyFlags();
    RETURN_IF_ERROR(parse_again());
    RETURN_IF_ERROR(ivy::NeedsNoRestart({{"--replica", running.replicas == flags.replicas}}));
    return flags.gateway;
  };
  Metrics metrics;
  ReplicasBackend backend(running, metrics);
  return RunGateway(running.gateway, read_again, backend, metrics);
}

}  // namespace

RunCommand AddIvyCommand(CLI::App& app, ParseAgain parse_again) {
  auto flags = std::make_shared<IvyFlags>();
  CLI::App* command = app.add_subcommand(
      "ivy", "The gateway alone: HTTP in, tokens to inference servers (bouquet tulip) over gRPC");
  flags->gateway.AddTo(*command);
  AddFlag(*command, "--replica", flags->replicas,
          "an inference server, HOST:PORT or unix:PATH; several are possible")
      ->required();
  command->footer(
      "MODEL is the same folder that the replicas serve; its weights are not read. SIGHUP reads "
      "the file of\n--config, the API keys, tokenizer files and prompts again; an error keeps all "
      "of them as they were.\n\n"
      "Examples:\n"
      "  bouquet ivy models/all-MiniLM-L6-v2 --replica gpu-1:50051 --replica gpu-2:50051\n"
      "  bouquet ivy models/all-MiniLM-L6-v2 --replica unix:/run/tulip.sock --port 80");
  return [flags, parse_again = std::move(parse_again)] { return RunIvy(*flags, parse_again); };
}

}  // namespace bouquet::cli
