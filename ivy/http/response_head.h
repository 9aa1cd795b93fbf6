#pragma once

#include <string>
#include <string_view>

#include "ivy/http/message.h"

namespace bouquet::ivy::http {

/// Where a connection goes after an answer.
enum class AfterAnswer : uint8_t {
  kKeep,
  kKeepAndSaySo,  // HTTP/1.0, which closes by default
  kClose,
};

/// Appends status line and header lines, with the empty line that ends them.
void AppendResponseHead(const Response& response, std::string_view request_id,
                        std::string_view date, std::string_view further_fields, AfterAnswer after,
                        std::string& out);

}  // namespace bouquet::ivy::http
