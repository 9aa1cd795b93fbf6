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

/// W3C Trace Context, section 3.2: version, trace-id, parent-id and flags in lower-case hex, not
/// all zero; what follows in a later version is passed on too.
bool IsTraceParent(std::string_view value) {
  constexpr std::string_view kForm = "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
  constexpr size_t kLongest = 128;
  if (value.size() < kForm.size() || value.size() > kLongest || value.starts_with("ff") ||
      (value.size() > kForm.size() && (value.starts_with("00") || value[kForm.size()] != '-'))) {
    return false;
  }
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'h' ? !is_hex(value[i]) : value[i] != '-') {
      return false;
    }
  }
  const auto is_zero = [&](size_t first, size_t count) {
    return value.substr(first, count).find_first_not_of('0') == std::string_view::npos;
  };
  return !is_zero(3, 32) && !is_zero(36, 16);
}

bool IsTraceState(std::string_view value) {
  constexpr size_t kLongest = 512;
  return value.size() <= kLongest &&
         std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7F; });
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
    } else if (http::EqualsIgnoringCase(header.name, "traceparent")) {
      fields.trace.parent = IsTraceParent(header.value) ? header.value : std::string_view();
    } else if (http::EqualsIgnoringCase(header.name, "tracestate")) {
      fields.trace.state = IsTraceState(header.value) ? header.value : std::string_view();
    }
  }
  return fields;
}

}  // namespace bouquet::ivy
