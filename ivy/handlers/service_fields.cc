#include "ivy/handlers/service_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "ivy/api/field_table.h"

namespace bouquet::ivy {
namespace {

api::Error Invalid(std::string_view header, std::string_view expected, std::string_view found) {
  return {api::ErrorKind::kInvalidValue,
          fmt::format("the header must be {}, not \"{}\"", expected, api::Shorten(found)),
          std::string(header)};
}

}  // namespace

std::variant<ServiceFields, api::Error> ReadServiceFields(const http::Request& request,
                                                          std::chrono::milliseconds max_timeout) {
  ServiceFields fields;
  fields.timeout = max_timeout;
  for (const http::Header& header : request.headers) {
    if (http::EqualsIgnoringCase(header.name, "x-request-timeout-ms")) {
      int64_t milliseconds = 0;
      const char* end = header.value.data() + header.value.size();
      const auto [parsed, error] = std::from_chars(header.value.data(), end, milliseconds);
      if (error != std::errc() || parsed != end || milliseconds < 1) {
        return Invalid("x-request-timeout-ms", "a number of milliseconds of at least 1",
                       header.value);
      }
      fields.timeout = std::min(max_timeout, std::chrono::milliseconds(milliseconds));
    } else if (http::EqualsIgnoringCase(header.name, "x-bouquet-class")) {
      if (header.value != "interactive" && header.value != "bulk") {
        return Invalid("x-bouquet-class", "interactive or bulk", header.value);
      }
      fields.traffic_class =
          header.value == "bulk" ? model::TrafficClass::kBulk : model::TrafficClass::kInteractive;
    } else if (http::EqualsIgnoringCase(header.name, "x-bouquet-partial")) {
      if (header.value != "allow") {
        return Invalid("x-bouquet-partial", "allow", header.value);
      }
      fields.allow_partial = true;
    }
  }
  return fields;
}

}  // namespace bouquet::ivy
