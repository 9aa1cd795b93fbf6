#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ivy/api/endpoint.h"

namespace bouquet::ivy::api {

/// The statuses that an endpoint can answer, rising.
std::vector<int> StatusesOf(const Endpoint& endpoint, bool has_keys);

/// An OpenAPI 3.1 document of the endpoints, from the tables that parse their bodies.
std::string RenderOpenApi(std::span<const Endpoint> endpoints, std::string_view version,
                          bool has_keys);

}  // namespace bouquet::ivy::api
