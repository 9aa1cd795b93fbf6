#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace bouquet {

/// Writes one JSON text, commas included: small answers, documents, result files. Rows of a request
/// do not go through here. The caller closes what it opened.
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);

  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(bool flag);
  JsonWriter& Value(double number);  // null where it is not finite
  template <std::integral T>
  JsonWriter& Value(T number) {
    return Raw(std::to_string(number));
  }
  JsonWriter& Null() { return Raw("null"); }
  /// `json` is a JSON text already.
  JsonWriter& Raw(std::string_view json);

  template <class T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  std::string Take() && { return std::move(out_); }

 private:
  void Separate();
  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace bouquet
