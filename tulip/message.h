#pragma once

#include <cstdint>
#include <vector>

#include <grpcpp/support/status.h>

#include "base/status.h"
#include "model/output_spec.h"
#include "proto/tulip/v1/inference.pb.h"
#include "tulip/core.h"
#include "tulip/sequence.h"

namespace bouquet::tulip {

namespace v1 = ::tulip::v1;  // of the protocol

// Tulip's protocol (proto/tulip/v1/inference.proto) to values and back. Pure.

/// The sequences of a message, without deadline. Core checks ids, lengths and dimensions; here the
/// shape is checked. Error: kInvalidArgument with the field; kUnimplemented for what the protocol
/// has and this server does not offer.
Result<std::vector<Sequence>> ReadSequences(const v1::EncodeRequest& request);

/// Rows, statuses and timings of a reply that is complete, each in the order of the request.
void WriteResponse(ChunkReply& reply, uint64_t queued_tokens, v1::EncodeResponse& response);

/// What a core is; the state is not filled in.
void WriteDescription(const CoreDescription& core, v1::ModelDescription& description);

/// The same code and message; field, retry delay and `queued_tokens` as an ErrorDetail.
grpc::Status ToGrpc(const Status& status, uint64_t queued_tokens);

}  // namespace bouquet::tulip
