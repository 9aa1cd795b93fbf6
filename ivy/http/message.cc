#include "ivy/http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace bouquet::ivy::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Request::Find(std::string_view name) const {
  for (const Header& header : headers) {
    if (EqualsIgnoringCase(header.name, name)) {
      return header.value;
    }
  }
  return {};
}

Response ErrorResponse(const api::Error& error, api::Dialect dialect, std::string_view request_id) {
  Response response;
  response.status = api::HttpStatus(error.kind, dialect);
  response.body = api::RenderError(error, dialect, request_id);
  response.failure = error.kind;
  if (api::HasRetryAfter(error.kind)) {
    fmt::format_to(std::back_inserter(response.fields), "retry-after: {}\r\n",
                   error.retry_after_seconds);
  }
  if (error.kind == api::ErrorKind::kUnauthorized) {
    response.fields += "www-authenticate: Bearer\r\n";
  }
  return response;
}

}  // namespace bouquet::ivy::http
