#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ivy/http/message.h"

namespace bouquet::ivy::http {

/// Which web pages may call this server from a browser. Immutable. Thread: any.
class Cors {
 public:
  /// "*" allows every page; none turns it off.
  explicit Cors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  bool enabled() const { return !origins_.empty(); }
  /// The answer to a preflight, which needs no key; nullopt when the request is none.
  std::optional<Response> AnswerPreflight(std::string_view method, const Request& request) const;
  /// Appends the header lines that let the page read the answer.
  void AppendFields(const Request& request, std::string& fields) const;

 private:
  bool Allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace bouquet::ivy::http
