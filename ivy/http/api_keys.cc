#include "ivy/http/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "ivy/http/message.h"

namespace bouquet::ivy::http {
namespace {

constexpr std::string_view kScheme = "Bearer ";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool IsVisible(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

bool EqualInConstantTime(std::string_view given, std::string_view key) {
  size_t difference = given.size() ^ key.size();
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<uint8_t>(given[i] ^ key[i % key.size()]);
  }
  return difference == 0;
}

}  // namespace

Result<std::vector<std::string>> ApiKeys::ReadFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    return NotFound(fmt::format("cannot read the file of API keys: {}", path), "api-key-file");
  }
  std::vector<std::string> keys;
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string_view key = Trim(line);
    if (key.empty() || key.front() == '#') {
      continue;
    }
    if (!IsVisible(key)) {
      return InvalidArgument(
          fmt::format("an API key may hold visible ASCII characters only: {} line {}", path,
                      number),
          "api-key-file");
    }
    keys.emplace_back(key);
  }
  if (keys.empty()) {
    return InvalidArgument(fmt::format("the file of API keys holds none: {}", path),
                           "api-key-file");
  }
  return keys;
}

Result<std::vector<std::string>> ApiKeys::ParseList(std::string_view list) {
  std::vector<std::string> keys;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view key = Trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!IsVisible(key)) {
      return InvalidArgument("an API key may hold visible ASCII characters only",
                             "BOUQUET_API_KEYS");
    }
    if (!key.empty()) {
      keys.emplace_back(key);
    }
  }
  return keys;
}

bool ApiKeys::required() const { return !keys_.Current()->empty(); }

bool ApiKeys::Accepts(std::string_view authorization) const {
  const std::shared_ptr<const List> keys = keys_.Current();
  if (keys->empty()) {
    return true;
  }
  if (authorization.size() <= kScheme.size() ||
      !EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  const std::string_view given = Trim(authorization.substr(kScheme.size()));
  bool accepted = false;
  for (const std::string& key : *keys) {  // all of them, whatever the first ones say
    accepted = EqualInConstantTime(given, key) || accepted;
  }
  return accepted;
}

}  // namespace bouquet::ivy::http
