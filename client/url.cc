#include "client/url.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace bouquet::client {
namespace {

Status Malformed(std::string_view text) {
  return InvalidArgument(
      fmt::format("the URL must be http://HOST:PORT, grpc://HOST:PORT or HOST:PORT: {}", text));
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

/// What a header or a resolver can take without quoting.
bool IsPlain(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c >= 0x7F || c == '@' || c == '?' || c == '#') {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string Url::Authority() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  std::string_view rest = text;
  if (const size_t colon = text.find("://"); colon != std::string_view::npos) {
    const std::string_view scheme = text.substr(0, colon);
    if (scheme != "http" && scheme != "grpc") {
      return InvalidArgument(
          fmt::format("the URL's scheme is not offered: {}; http and grpc are", scheme));
    }
    url.scheme = scheme == "http" ? Url::Scheme::kHttp : Url::Scheme::kGrpc;
    rest.remove_prefix(colon + 3);
  }
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    url.path = rest.substr(slash);
    rest = rest.substr(0, slash);
    while (url.path.ends_with('/')) {
      url.path.pop_back();
    }
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) {
      return Malformed(text);
    }
    url.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const size_t colon = rest.find(':');
    url.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? "" : rest.substr(colon);
  }
  const bool needs_port = url.scheme == Url::Scheme::kGrpc;
  if (!port.empty() && (port.front() != ':' || !IsPort(port.substr(1)))) {
    return Malformed(text);
  }
  url.port = port.empty() ? "80" : port.substr(1);
  if (url.host.empty() || !IsPlain(text) || (needs_port && (port.empty() || !url.path.empty()))) {
    return Malformed(text);
  }
  return url;
}

}  // namespace bouquet::client
