// Any bytes as the part "decoder" of a tokenizer.json (the first line) and tokens (one on each line
// after it): refused with a message, or decoded to UTF-8, the same every time. Does not cover
// whether it is the right text: decoder_test.cc, parity.py.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "text/decoder.h"
#include "text/unicode/utf8.h"

using bouquet::text::unicode::FindInvalidUtf8;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), size);
  const auto document = bouquet::JsonDocument::Parse(input.substr(0, end), "fuzz");
  if (!document.ok()) {
    CHECK(!document.status().message().empty());
    return 0;
  }
  const auto root = bouquet::JsonObject::From(document.value().root(), "fuzz");
  if (!root.ok()) {
    return 0;
  }
  const auto decoder = bouquet::text::ParseDecoder(root.value());
  if (!decoder.ok()) {
    CHECK(!decoder.status().message().empty());
    return 0;
  }
  std::vector<std::string> tokens;
  std::string_view rest = input.substr(end);
  if (FindInvalidUtf8(rest).has_value()) {
    return 0;  // no vocabulary holds such tokens
  }
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view token = rest.substr(0, rest.find('\n'));
    tokens.emplace_back(token);
    rest.remove_prefix(token.size());
  }
  const bouquet::Result<std::string> decoded = decoder.value().Decode(tokens);
  if (!decoded.ok()) {
    return 0;  // too long, or an expression gave up
  }
  const std::string& text = decoded.value();
  CHECK(!FindInvalidUtf8(text).has_value());
  CHECK(decoder.value().Decode(tokens).value() == text);
  CHECK(!FindInvalidUtf8(bouquet::text::CleanUpSpaces(text)).has_value());
  return 0;
}
