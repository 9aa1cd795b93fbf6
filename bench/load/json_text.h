#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace bouquet::bench {

/// Writes JSON front to back; commas come by themselves. Numbers that are not finite become null.
class JsonText {
 public:
  JsonText& BeginObject();
  JsonText& EndObject();
  JsonText& BeginArray();
  JsonText& EndArray();
  JsonText& Key(std::string_view name);

  JsonText& Value(std::string_view text);
  JsonText& Value(const char* text) { return Value(std::string_view(text)); }
  JsonText& Value(bool value);
  JsonText& Value(double value);
  template <std::integral Integer>
  JsonText& Value(Integer value) {
    return Number(static_cast<int64_t>(value));
  }
  JsonText& Null();
  /// A value that is JSON already.
  JsonText& Raw(std::string_view json);

  template <class T>
  JsonText& Field(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }

  std::string Take() && { return std::move(text_); }

 private:
  JsonText& Number(int64_t value);
  void BeforeValue();

  std::string text_;
};

}  // namespace bouquet::bench
