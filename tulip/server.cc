#include "tulip/server.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "base/address.h"
#include "tulip/inference_service.h"

namespace bouquet::tulip {
namespace {

// A hung step is seen by its expected end; this only bounds how late health says so.
constexpr std::chrono::milliseconds kWatchInterval(200);
// Lets the last answers leave after the core has stopped.
constexpr std::chrono::seconds kSendTime(2);
// A gateway pings an idle connection this often to learn that a replica has stopped.
constexpr int kShortestPingIntervalMs = 500;

}  // namespace

Server::Server(const ServerOptions& options, const Clock& clock)
    : service_(std::make_unique<InferenceService>(options.model_name, options.software_version,
                                                  options.max_message_bytes, clock)),
      ports_(options.listen.size()) {}

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, const Clock& clock) {
  if (options.listen.empty()) {
    return InvalidArgument("at least one address to listen on is needed", "--listen");
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto server = std::unique_ptr<Server>(new Server(options, clock));
  grpc::ServerBuilder builder;
  std::vector<Address> addresses;
  for (size_t i = 0; i < options.listen.size(); ++i) {
    ASSIGN_OR_RETURN(Address address, ParseAddress(options.listen[i], "--listen"));
    addresses.push_back(std::move(address));
    builder.AddListeningPort(options.listen[i], grpc::InsecureServerCredentials(),
                             &server->ports_[i]);
  }
  // Two servers on one port would share its connections between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kShortestPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);  // bounded by the request: rows of the sequences in it
  builder.RegisterService(server->service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return Unavailable(
        fmt::format("cannot listen on {}: in use, or not an address of this host, or the socket's "
                    "folder does not exist",
                    fmt::join(options.listen, ", ")));
  }
  for (size_t i = 0; i < server->ports_.size(); ++i) {
    if (addresses[i].is_unix()) {
      server->ports_[i] = 0;
    }
  }
  server->server_->GetHealthCheckService()->SetServingStatus(false);
  server->server_->GetHealthCheckService()->SetServingStatus(v1::Inference::service_full_name(),
                                                             false);
  server->watch_ = std::thread([watched = server.get()] { watched->WatchProgress(); });
  return server;
}

Server::~Server() {
  if (server_ == nullptr) {
    return;  // it could not be started
  }
  StopWatching();
  server_->Shutdown(std::chrono::system_clock::now());
  if (core_ != nullptr) {
    core_->Stop(std::chrono::milliseconds(0));  // answers whatever a call still waits for
  }
  server_->Wait();
}

void Server::SetReady(Core& core) {
  core_ = &core;
  service_->SetCore(core);
  watch_changed_.notify_all();
}

void Server::Drain(std::chrono::milliseconds timeout) {
  service_->SetDraining();
  StopWatching();
  if (core_ != nullptr) {
    core_->Stop(timeout);
  }
  server_->Shutdown(std::chrono::system_clock::now() + kSendTime);
}

bool Server::IsServing() const { return service_->state() == v1::REPLICA_STATE_SERVING; }

void Server::StopWatching() {
  {
    const std::lock_guard lock(watch_mutex_);
    stopping_ = true;
  }
  watch_changed_.notify_all();
  if (watch_.joinable()) {
    watch_.join();
  }
}

/// Keeps the health service at what the core says, until the server stops: then NOT_SERVING.
void Server::WatchProgress() {
  grpc::HealthCheckServiceInterface& health = *server_->GetHealthCheckService();
  const auto tell = [&health](bool serving) {
    health.SetServingStatus(serving);
    health.SetServingStatus(v1::Inference::service_full_name(), serving);
  };
  bool told = false;
  std::unique_lock lock(watch_mutex_);
  while (!stopping_) {
    const bool serving = IsServing();
    if (serving != told) {
      tell(serving);
      told = serving;
    }
    watch_changed_.wait_for(lock, kWatchInterval);
  }
  tell(false);
}

}  // namespace bouquet::tulip
