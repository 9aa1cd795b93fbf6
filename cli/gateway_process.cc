#include "cli/gateway_process.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/engine_flags.h"
#include "cli/signals.h"
#include "cli/text_source.h"
#include "ivy/gateway.h"

namespace bouquet::cli {
namespace {

/// A gateway in front of a backend, from its start to its end. Loading and SIGHUP run on threads of
/// their own and take turns.
class GatewayProcess {
 public:
  GatewayProcess(GatewayFlags flags, const ReadFlags& read_again, EncodeBackend& backend,
                 Metrics& metrics);

  ExitCode Run();

 private:
  ExitCode Start();
  void LoadModel(const std::stop_token& stop);
  Status OfferModel();
  Status Reload();
  int WaitForTheEnd();

  ivy::ServedModel MakeServedModel(const GatewayFlags& flags, const model::ModelFolder& folder,
                                   std::shared_ptr<ivy::Encoder> encoder) const;

  const ReadFlags& read_again_;
  EncodeBackend& backend_;
  Metrics& metrics_;
  Counter& reloads_;
  Counter& failed_reloads_;
  const Signals signals_;
  std::unique_ptr<ivy::Gateway> gateway_;

  std::mutex mutex_;  // guards what follows: the settings in force
  GatewayFlags flags_;
  model::ModelFolder folder_;
  std::optional<ivy::TextSource> source_;  // once read
  bool loaded_ = false;
};

Counter& AddReloads(Metrics& metrics, const char* outcome) {
  return metrics.AddCounter("bouquet_reloads_total",
                            "Times that SIGHUP had flags, keys, tokenizer and prompts read again",
                            {{"outcome", outcome}});
}

GatewayProcess::GatewayProcess(GatewayFlags flags, const ReadFlags& read_again,
                               EncodeBackend& backend, Metrics& metrics)
    : read_again_(read_again),
      backend_(backend),
      metrics_(metrics),
      reloads_(AddReloads(metrics, "ok")),
      failed_reloads_(AddReloads(metrics, "failed")),
      flags_(std::move(flags)) {}

ivy::ServedModel GatewayProcess::MakeServedModel(const GatewayFlags& flags,
                                                 const model::ModelFolder& folder,
                                                 std::shared_ptr<ivy::Encoder> encoder) const {
  ivy::ServedModel served;
  served.name = folder.name;
  served.aliases = flags.aliases;
  served.folder = folder;
  served.encode = [encoder](ivy::EncodeRequest request) {
    return encoder->Encode(std::move(request));
  };
  served.read_texts = [encoder = std::move(encoder)](ivy::TextRequest request) {
    return encoder->ReadTexts(std::move(request));
  };
  served.progress = [&backend = backend_] { return backend.Check(); };
  return served;
}

/// Ends the process when the model cannot be used: nothing was accepted yet.
void GatewayProcess::LoadModel(const std::stop_token& stop) {
  const SystemClock clock;
  const TimePoint start = clock.Now();
  const auto fail = [](const Status& status) {
    std::_Exit(static_cast<int>(Fail(ExitOfLoading(status), status)));
  };
  std::unique_lock lock(mutex_);
  const model::ModelFolder folder = folder_;
  Result<ivy::TextSource> source = LoadTextSource(folder);
  if (!source.ok()) {
    fail(source.status());
  }
  source_ = std::move(source).value();
  lock.unlock();

  const Result<ivy::EngineFacts> facts = backend_.Load(folder, stop);
  if (facts.code() == StatusCode::kCancelled) {
    return;
  }
  if (!facts.ok()) {
    fail(facts.status());
  }
  if (const Status status = OfferModel(); !status.ok()) {
    fail(status);
  }
  gateway_->SetReady(folder.name, *facts);
  LogInfo("{} is ready after {} ms: {}, {}, {} tokens a step", folder.name,
          std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - start).count(),
          facts->device, facts->dtype, facts->step_tokens);
}

/// With the settings that are in force by now.
Status GatewayProcess::OfferModel() {
  const std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(std::shared_ptr<ivy::Encoder> encoder,
                   backend_.MakeEncoder(flags_.EncoderOptions(), *source_));
  gateway_->Replace(MakeServedModel(flags_, folder_, std::move(encoder)));
  loaded_ = true;
  return {};
}

/// Everything that can fail comes before anything is exchanged.
Status GatewayProcess::Reload() {
  ASSIGN_OR_RETURN(GatewayFlags next, read_again_());
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(flags_.CheckReload(next));
  ASSIGN_OR_RETURN(model::ModelFolder folder, next.OpenFolder());
  if (folder.identity != folder_.identity) {
    return FailedPrecondition(
        fmt::format("needs a restart: {} holds another model by now: identity {}, expected {}",
                    folder.path.string(), folder.identity, folder_.identity));
  }
  RETURN_IF_ERROR(next.CheckAgainst(folder));
  ASSIGN_OR_RETURN(ivy::TextSource source, LoadTextSource(folder));
  if (source_ && source_->pipeline != nullptr && source.pipeline == nullptr) {
    return FailedPrecondition("texts could not be read any more: " + source.no_text_reason);
  }
  std::shared_ptr<ivy::Encoder> encoder;
  if (loaded_) {
    ASSIGN_OR_RETURN(encoder, backend_.MakeEncoder(next.EncoderOptions(), source));
  }
  RETURN_IF_ERROR(gateway_->Reload(next.Resolve()));
  if (loaded_) {
    gateway_->Replace(MakeServedModel(next, folder, std::move(encoder)));
  }
  flags_ = std::move(next);
  folder_ = std::move(folder);
  source_ = std::move(source);
  return {};
}

/// The signal that ends the process.
int GatewayProcess::WaitForTheEnd() {
  for (;;) {
    const int signal = signals_.Wait();
    if (signal != SIGHUP) {
      return signal;
    }
    if (const Status status = Reload(); status.ok()) {
      reloads_.Increment();
      LogInfo("SIGHUP: flags, API keys, tokenizer files and prompts were read again");
    } else {
      failed_reloads_.Increment();
      LogError("SIGHUP: the old settings stay in force: {}", status.message());
    }
  }
}

ExitCode GatewayProcess::Start() {
  Result<model::ModelFolder> folder = flags_.OpenFolder();
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  folder_ = std::move(folder).value();
  if (const Status status = flags_.CheckAgainst(folder_); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  std::vector<ivy::ServedModel> models;
  models.push_back(MakeServedModel(flags_, folder_, nullptr));
  auto created = ivy::Gateway::Create(flags_.Resolve(), std::move(models), metrics_);
  if (!created.ok()) {
    return Fail(ExitCode::kUsage, created.status());
  }
  gateway_ = std::move(created).value();
  if (const Status status = gateway_->Start(); !status.ok()) {
    return Fail(ExitCode::kOutput, status);
  }
  gateway_->SetLoading(folder_.name, backend_.loading_reason());
  LogInfo("listening on http://{}:{}, loading {}", flags_.config.host, gateway_->port(),
          folder_.path.string());
  return ExitCode::kOk;
}

ExitCode GatewayProcess::Run() {
  if (const ExitCode code = Start(); code != ExitCode::kOk) {
    return code;
  }
  std::jthread loading([this](const std::stop_token& stop) { LoadModel(stop); });
  const int signal = WaitForTheEnd();
  LogInfo("{}: finishing what was accepted", Signals::NameOf(signal));
  signals_.EndAtTheNext();
  loading.request_stop();
  const bool all_answered = gateway_->Drain();
  loading.join();
  gateway_->Stop();
  backend_.Stop();  // before the gateway goes: its executors take the last answers
  LogInfo("{}", all_answered ? "every accepted request was answered"
                             : "requests were left when --drain-timeout-ms had passed");
  return ExitCode::kOk;
}

}  // namespace

ExitCode RunGateway(const GatewayFlags& flags, const ReadFlags& read_again, EncodeBackend& backend,
                    Metrics& metrics) {
  return GatewayProcess(flags, read_again, backend, metrics).Run();
}

}  // namespace bouquet::cli
