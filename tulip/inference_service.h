#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "proto/tulip/v1/inference.grpc.pb.h"
#include "tulip/core.h"

namespace bouquet::tulip {

namespace v1 = ::tulip::v1;  // of the protocol

/// Where gRPC meets the core: a message becomes sequences, a complete reply becomes a response, a
/// cancelled call a cancelled queue entry. Until SetCore it answers that the model is loading.
/// Thread: any; a call holds no thread while it waits.
class InferenceService final : public v1::Inference::CallbackService {
 public:
  InferenceService(std::string model_name, std::string software_version, int64_t max_message_bytes,
                   const Clock& clock);

  /// Serves from here on. `core` must outlive every call.
  void SetCore(Core& core);
  /// Takes nothing new from here on; what was accepted goes on.
  void SetDraining();

  v1::ReplicaState state() const;

  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::ModelDescription* response) override;

 private:
  class EncodeCall;

  Status CheckServing(const std::string& model) const;

  const std::string model_name_;
  const std::string software_version_;
  const int64_t max_message_bytes_;
  const Clock& clock_;
  std::atomic<Core*> core_ = nullptr;
  std::atomic<bool> draining_ = false;
};

}  // namespace bouquet::tulip
