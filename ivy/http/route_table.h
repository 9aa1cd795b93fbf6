#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "ivy/api/endpoint.h"
#include "ivy/http/message.h"

namespace bouquet::ivy::http {

/// Answers a request on the connection's executor. The request outlives the coroutine. A handler
/// that throws is answered 500.
using Handler = std::function<boost::asio::awaitable<Response>(Request&)>;

struct Route {
  api::Endpoint endpoint;
  Handler handler;
  size_t metric_index = 0;  // rows of one label share it
};

struct RouteMatch {
  const Route* route = nullptr;
  std::string_view rest;  // of the path, after a wildcard's prefix; still percent-encoded
  std::string allow;      // methods of a known path that was asked with another one
};

/// Path and method → route. Filled at start, then read only. Thread: any.
class RouteTable {
 public:
  /// `label` names the route in metrics; by default it is its method and path. A path may also be
  /// reachable under other paths (a dialect's prefix): add it again with the same label.
  void Add(Route route, std::string label = {});

  /// `path` has no query. Neither route nor `allow`: the path is unknown.
  RouteMatch Find(std::string_view method, std::string_view path) const;

  const std::vector<std::string>& labels() const { return labels_; }
  /// The dialect of each label, or nothing where the route is of no dialect.
  const std::vector<std::optional<api::Dialect>>& label_dialects() const { return label_dialects_; }

 private:
  using Methods = std::array<std::optional<size_t>, 2>;  // index of the route, by api::Method
  const Methods* FindPath(std::string_view path, std::string_view& rest) const;

  std::vector<Route> routes_;
  std::map<std::string, Methods, std::less<>> exact_;
  std::map<std::string, Methods, std::less<>> prefixes_;  // without the star
  std::vector<std::string> labels_;
  std::vector<std::optional<api::Dialect>> label_dialects_;
};

/// The path of a request target: no query, no scheme and authority. Empty for what has no path.
std::string_view PathOf(std::string_view target);

/// Percent-decoding. nullopt for a broken escape.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace bouquet::ivy::http
