#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/status.h"
#include "client/embed_client.h"

namespace bouquet::client {

/// Over tulip.v1: straight to an inference server. All requests share one connection. gRPC starts
/// threads of its own, so no process that holds such a client may fork.
Result<std::unique_ptr<EmbedClient>> CreateGrpcEmbedClient(
    const boost::asio::any_io_executor& executor, ClientOptions options);

/// A serialized EncodeRequest. Inputs are ids (CHECK).
std::string GrpcRequestBytes(const std::vector<EmbedInput>& inputs);

}  // namespace bouquet::client
