#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/embed_client.h"

namespace bouquet::client {

/// The JSON body of an embedding request in the dialect of `options`.
std::string RequestBody(const ClientOptions& options, const std::vector<EmbedInput>& inputs);

/// Head and body of the POST, ready to be written to a socket.
std::string HttpRequestBytes(const ClientOptions& options, const std::vector<EmbedInput>& inputs);

/// Head of a GET of `path` (which begins with "/").
std::string HttpGetBytes(const ClientOptions& options, std::string_view path);

}  // namespace bouquet::client
