#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/snapshot.h"
#include "base/status.h"

namespace bouquet::ivy::http {

/// The keys that open the data routes. Never logged. Thread: any.
class ApiKeys {
 public:
  ApiKeys() = default;  // no keys: everything is open
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  /// One key a line; blank lines and lines that begin with '#' are skipped. Error: kNotFound when
  /// `path` cannot be read; kInvalidArgument when it holds no key, or one with characters that no
  /// header carries.
  static Result<std::vector<std::string>> ReadFile(const std::string& path);
  /// Comma-separated, as in BOUQUET_API_KEYS.
  static Result<std::vector<std::string>> ParseList(std::string_view list);

  /// Takes effect for requests that are checked from now on.
  void Replace(std::vector<std::string> keys) { keys_.Replace(std::move(keys)); }

  bool required() const;
  /// `authorization` is the header's value. The time taken does not tell how much of a key was
  /// right.
  bool Accepts(std::string_view authorization) const;

 private:
  using List = std::vector<std::string>;
  Snapshot<List> keys_{List()};
};

}  // namespace bouquet::ivy::http
