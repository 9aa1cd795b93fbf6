#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "tulip/core.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace bouquet::tulip {

class InferenceService;

struct ServerOptions {
  /// HOST:PORT (port 0: any free one) or unix:PATH.
  std::vector<std::string> listen;
  std::string model_name;
  std::string software_version;
  int64_t max_message_bytes = 16 << 20;  // of one EncodeRequest; beyond it RESOURCE_EXHAUSTED
};

/// The gRPC server around a core: Tulip's protocol, the standard health service (overall "" and
/// "tulip.v1.Inference": SERVING while steps make progress) and reflection. It listens before the
/// model is loaded and says so. Block SIGTERM before Start, or gRPC's threads receive it.
class Server {
 public:
  /// Error: kInvalidArgument for an address that is none; kUnavailable when it cannot be listened
  /// on.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options, const Clock& clock);
  /// Ends without draining.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Serves from here on. `core` must outlive the server.
  void SetReady(Core& core);
  /// NOT_SERVING at once; new work is refused, what was accepted is finished. Then the core stops.
  /// What is left after `timeout` is answered kUnavailable.
  void Drain(std::chrono::milliseconds timeout);

  /// What the health service says. Thread: any.
  bool IsServing() const;

  /// One per TCP address, in the order of `listen`; 0 for a unix socket.
  const std::vector<int>& ports() const { return ports_; }

 private:
  explicit Server(const ServerOptions& options, const Clock& clock);

  void WatchProgress();
  void StopWatching();

  std::unique_ptr<InferenceService> service_;
  std::vector<int> ports_;
  std::unique_ptr<grpc::Server> server_;
  Core* core_ = nullptr;

  std::mutex watch_mutex_;
  std::condition_variable watch_changed_;
  bool stopping_ = false;
  std::thread watch_;
};

}  // namespace bouquet::tulip
