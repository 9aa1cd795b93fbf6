#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet::client {

/// Where a server listens.
struct Url {
  enum class Scheme : uint8_t { kHttp, kGrpc };

  Scheme scheme = Scheme::kHttp;
  std::string host;  // a name or an address, without the brackets of IPv6
  std::string port;
  std::string path;  // of HTTP, put before every route: "" or "/prefix"

  /// "host:port", or "[::1]:port".
  std::string Authority() const;
};

/// Reads `http://HOST:PORT[/PREFIX]`, `grpc://HOST:PORT` or `HOST:PORT` (HTTP). The port of HTTP is
/// 80 when it is not given. Error: kInvalidArgument with the form that would have been right.
Result<Url> ParseUrl(std::string_view text);

}  // namespace bouquet::client
