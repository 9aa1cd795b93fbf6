#include "base/address.h"

#include <fmt/format.h>

#include <charconv>

namespace bouquet {
namespace {

constexpr std::string_view kUnix = "unix:";

}  // namespace

Result<Address> ParseAddress(std::string_view text, std::string_view field) {
  Address address;
  if (text.starts_with(kUnix) && text.size() > kUnix.size()) {
    address.unix_path = text.substr(kUnix.size());
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon > 0 && !text.starts_with(kUnix)) {
    const std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    const bool is_bare_ipv6 = host.front() != '[' && host.find(':') != std::string_view::npos;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error == std::errc() && end == port.data() + port.size() && !is_bare_ipv6) {
      address.host = host;
      return address;
    }
  }
  return InvalidArgument(
      fmt::format("{} must be HOST:PORT with a port of 0..65535, or unix:PATH: {}", field, text),
      std::string(field));
}

}  // namespace bouquet
