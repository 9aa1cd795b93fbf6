#include "ivy/http/route_table.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace bouquet::ivy::http {

void RouteTable::Add(Route route, std::string label) {
  const api::Endpoint& endpoint = route.endpoint;
  if (label.empty()) {
    label = std::string(api::MethodName(endpoint.method)) + " " + endpoint.path;
  }
  const auto known = std::find(labels_.begin(), labels_.end(), label);
  route.metric_index = static_cast<size_t>(known - labels_.begin());
  if (known == labels_.end()) {
    labels_.push_back(std::move(label));
    label_dialects_.push_back(endpoint.body == nullptr ? std::nullopt
                                                       : std::optional(endpoint.dialect));
  }
  const bool wildcard = endpoint.path.ends_with("/*");
  Methods& methods = wildcard ? prefixes_[endpoint.path.substr(0, endpoint.path.size() - 1)]
                              : exact_[endpoint.path];
  std::optional<size_t>& slot = methods[static_cast<size_t>(endpoint.method)];
  CHECK(!slot.has_value());
  slot = routes_.size();
  routes_.push_back(std::move(route));
}

const RouteTable::Methods* RouteTable::FindPath(std::string_view path,
                                                std::string_view& rest) const {
  if (const auto found = exact_.find(path); found != exact_.end()) {
    return &found->second;
  }
  for (const auto& [prefix, methods] : prefixes_) {
    if (path.size() > prefix.size() && path.starts_with(prefix)) {
      rest = path.substr(prefix.size());
      return &methods;
    }
  }
  return nullptr;
}

RouteMatch RouteTable::Find(std::string_view method, std::string_view path) const {
  RouteMatch match;
  const Methods* methods = FindPath(path, match.rest);
  if (methods == nullptr) {
    return match;
  }
  const auto& [get, post] = *methods;
  if (get && (method == "GET" || method == "HEAD")) {
    match.route = &routes_[*get];
  } else if (post && method == "POST") {
    match.route = &routes_[*post];
  } else {
    match.allow = get && post ? "GET, HEAD, POST" : get ? "GET, HEAD" : "POST";
  }
  return match;
}

std::string_view PathOf(std::string_view target) {
  if (const size_t scheme = target.find("://");
      scheme != std::string_view::npos && !target.starts_with('/')) {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find_first_of("?#"));
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    uint8_t byte = 0;
    const char* digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

}  // namespace bouquet::ivy::http
