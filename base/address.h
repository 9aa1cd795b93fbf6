#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet {

/// Where a process listens or is reached: HOST:PORT or unix:PATH. An IPv6 host stands in brackets.
struct Address {
  std::string host;       // empty for a socket of the file system
  uint16_t port = 0;      // 0: any free one
  std::string unix_path;  // empty for a host

  bool is_unix() const { return !unix_path.empty(); }
};

/// Error: kInvalidArgument with `field`, such as "--listen", for what is neither.
Result<Address> ParseAddress(std::string_view text, std::string_view field);

}  // namespace bouquet
