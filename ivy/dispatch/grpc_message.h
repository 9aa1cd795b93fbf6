#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"
#include "ivy/dispatch/replica.h"
#include "proto/tulip/v1/inference.pb.h"

namespace bouquet::ivy {

namespace v1 = ::tulip::v1;  // of the protocol

// Ivy's side of Tulip's protocol: values to messages and back. Pure.

/// All sequences of a chunk, copied end to end.
void WriteRequest(const Chunk& chunk, v1::EncodeRequest& request);

/// The rows of a response to a chunk of `num_sequences`. Error: kInternal when the message does not
/// have the shape that was asked for.
Result<ChunkRows> ReadRows(const v1::EncodeResponse& response, size_t num_sequences);

ReplicaDescription ReadDescription(const v1::ModelDescription& description);

/// A status that is not OK, its field and retry delay included. `from_server` says whether the
/// replica itself wrote it: what comes from the network carries no detail.
struct ReadStatus {
  Status status;
  bool from_server = false;
};
ReadStatus ReadGrpcStatus(const grpc::Status& status);

}  // namespace bouquet::ivy
