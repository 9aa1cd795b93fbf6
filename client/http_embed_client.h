#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "base/status.h"
#include "client/embed_client.h"

namespace bouquet::client {

/// Over HTTP/1.1, in the dialect of `options`. Error: kInvalidArgument when the host cannot be
/// resolved.
Result<std::unique_ptr<EmbedClient>> CreateHttpEmbedClient(
    const boost::asio::any_io_executor& executor, ClientOptions options);

}  // namespace bouquet::client
