#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

// The one place that names the JSON library; users write `simdjson::dom::element` and so on.
#include <simdjson.h>

#include "base/status.h"

namespace bouquet {

/// A parsed JSON text. Owns the memory that its elements point into. Thread: read-only use from
/// any.
class JsonDocument {
 public:
  static constexpr size_t kDefaultMaxDepth = 64;

  /// `source` names the text in errors: a file name, or "body". Error: kInvalidArgument with what
  /// the parser says.
  static Result<JsonDocument> Parse(std::string_view text, std::string source,
                                    size_t max_depth = kDefaultMaxDepth);
  /// Error: kNotFound when the file cannot be read; kInvalidArgument when it is not JSON.
  static Result<JsonDocument> ParseFile(const std::filesystem::path& path,
                                        size_t max_depth = kDefaultMaxDepth);

  simdjson::dom::element root() const { return root_; }
  const std::string& source() const { return source_; }

 private:
  JsonDocument() = default;
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
  std::string source_;
};

/// Typed look-ups for configuration files: an absent key or a null is nullopt; another type is
/// kInvalidArgument that names file, key, the type found and the one expected. Integers out of
/// range are refused too.
class JsonObject {
 public:
  /// Error: kInvalidArgument when `element` is no object. `where` is a path for messages, such as
  /// "config.json".
  static Result<JsonObject> From(simdjson::dom::element element, std::string where);

  bool Has(std::string_view key) const;
  Result<std::optional<std::string>> String(std::string_view key) const;
  Result<std::optional<int64_t>> Integer(std::string_view key, int64_t minimum,
                                         int64_t maximum) const;
  Result<std::optional<double>> Number(std::string_view key) const;
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<JsonObject>> Object(std::string_view key) const;
  /// The raw element for anything else (arrays, either-or fields). nullopt when absent or null.
  std::optional<simdjson::dom::element> Element(std::string_view key) const;

  /// The same, but absence is an error too.
  Result<int64_t> RequiredInteger(std::string_view key, int64_t minimum, int64_t maximum) const;
  Result<std::string> RequiredString(std::string_view key) const;
  Result<bool> RequiredBool(std::string_view key) const;

  const std::string& where() const { return where_; }
  simdjson::dom::object object() const { return object_; }

 private:
  JsonObject(simdjson::dom::object object, std::string where)
      : object_(object), where_(std::move(where)) {}
  simdjson::dom::object object_;
  std::string where_;
};

/// Appends `text` as a JSON string with its quotes. `text` must be UTF-8; control characters are
/// escaped.
void AppendJsonString(std::string_view text, std::string& out);
/// Appends the shortest decimal that reads back as the same float32. `value` must be finite.
void AppendJsonFloat(float value, std::string& out);

/// "string", "number", … for error messages.
std::string_view JsonTypeName(simdjson::dom::element element);

}  // namespace bouquet
