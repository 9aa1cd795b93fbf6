#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/status.h"
#include "client/embed_client.h"

namespace bouquet::bench {

using Clients = std::vector<std::unique_ptr<client::EmbedClient>>;

/// Makes a client per server, runs `conversation` on this thread until it ends, and closes them.
Result<std::string> RunSession(
    const std::vector<client::ClientOptions>& servers,
    const std::function<boost::asio::awaitable<Result<std::string>>(Clients&)>& conversation);

}  // namespace bouquet::bench
