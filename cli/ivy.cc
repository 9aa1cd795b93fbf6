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
#include "cli/text_side.h"
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

  Result<ivy::EngineFacts> Load(model::ModelFolder folder, const std::stop_token& stop) override {
    const GatewayFlags& gateway = flags_.gateway;
    ASSIGN_OR_RETURN(text_, TextSide::Load(folder, gateway.text_workers, metrics_, clock_));
    pool_ = std::make_unique<ivy::ReplicaPool>(folder.identity, folder.name, metrics_);
    for (const std::string& address : flags_.replicas) {
      pool_->Add(std::make_unique<ivy::GrpcReplica>(
          ivy::GrpcReplicaOptions{.address = address},
          [pool = pool_.get()](const ivy::ReplicaDescription& replica) {
            return pool->Admit(replica);
          },
          clock_));
    }
    if (!pool_->WaitForModel(stop)) {
      return Cancelled("stopped before a replica was found");
    }
    ivy::EncoderOptions options;
    options.max_tokens_per_request = gateway.config.max_tokens_per_request;
    options.max_input_tokens = static_cast<int32_t>(gateway.config.max_input_tokens);
    encoder_ = std::make_unique<ivy::Encoder>(options, text_->stage(), *pool_);
    const ivy::ReplicaDescription& model = pool_->Describe();
    return ivy::EngineFacts{.device = model.device,
                            .dtype = model.dtype,
                            .step_tokens = model.step_tokens,
                            .max_batch_sequences = model.max_batch_sequences,
                            .numerics = model.numerics_fingerprint};
  }

  const char* loading_reason() const override { return "no replica has been found yet"; }
  ivy::Encoder& encoder() override { return *encoder_; }

  ivy::Readiness Check() const override {
    ivy::ReplicaLoad load = pool_->Load();
    return {load.ready, std::move(load.reason_unready), pool_->num_replicas(), pool_->num_ready()};
  }

  void Stop() override {
    encoder_.reset();
    pool_.reset();
  }

 private:
  const IvyFlags& flags_;
  Metrics& metrics_;
  const SystemClock clock_;
  std::unique_ptr<TextSide> text_;
  std::unique_ptr<ivy::ReplicaPool> pool_;
  std::unique_ptr<ivy::Encoder> encoder_;
};

ExitCode RunIvy(const IvyFlags& flags) {
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
  Metrics metrics;
  ReplicasBackend backend(flags, metrics);
  return RunGateway(flags.gateway, backend, metrics);
}

}  // namespace

RunCommand AddIvyCommand(CLI::App& app) {
  auto flags = std::make_shared<IvyFlags>();
  CLI::App* command = app.add_subcommand(
      "ivy", "The gateway alone: HTTP in, tokens to inference servers (bouquet tulip) over gRPC");
  flags->gateway.AddTo(*command);
  AddFlag(*command, "--replica", flags->replicas,
          "an inference server, HOST:PORT or unix:PATH; several are possible")
      ->required();
  command->footer(
      "MODEL is the same folder that the replicas serve; its weights are not read.\n\n"
      "Examples:\n"
      "  bouquet ivy models/all-MiniLM-L6-v2 --replica gpu-1:50051 --replica gpu-2:50051\n"
      "  bouquet ivy models/all-MiniLM-L6-v2 --replica unix:/run/tulip.sock --port 80");
  return [flags] { return RunIvy(*flags); };
}

}  // namespace bouquet::cli
