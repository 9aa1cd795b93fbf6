#include "bench/load/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/json.h"

namespace bouquet::bench {

void JsonText::BeforeValue() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') {
    text_ += ',';
  }
}

JsonText& JsonText::BeginObject() {
  BeforeValue();
  text_ += '{';
  return *this;
}

JsonText& JsonText::EndObject() {
  text_ += '}';
  return *this;
}

JsonText& JsonText::BeginArray() {
  BeforeValue();
  text_ += '[';
  return *this;
}

JsonText& JsonText::EndArray() {
  text_ += ']';
  return *this;
}

JsonText& JsonText::Key(std::string_view name) {
  BeforeValue();
  AppendJsonString(name, text_);
  text_ += ':';
  return *this;
}

JsonText& JsonText::Value(std::string_view text) {
  BeforeValue();
  AppendJsonString(text, text_);
  return *this;
}

JsonText& JsonText::Value(bool value) { return Raw(value ? "true" : "false"); }

JsonText& JsonText::Value(double value) {
  if (!std::isfinite(value)) {
    return Null();
  }
  BeforeValue();
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

JsonText& JsonText::Number(int64_t value) {
  BeforeValue();
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

JsonText& JsonText::Null() { return Raw("null"); }

JsonText& JsonText::Raw(std::string_view json) {
  BeforeValue();
  text_ += json;
  return *this;
}

}  // namespace bouquet::bench
