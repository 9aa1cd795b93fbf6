#include "ivy/http/response_head.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>

namespace bouquet::ivy::http {
namespace {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

}  // namespace

void AppendResponseHead(const Response& response, std::string_view request_id,
                        std::string_view date, std::string_view further_fields, AfterAnswer after,
                        std::string& out) {
  const auto append = std::back_inserter(out);
  fmt::format_to(append, FMT_COMPILE("HTTP/1.1 {} {}\r\ndate: {}\r\nx-request-id: {}\r\n"),
                 response.status, ReasonPhrase(response.status), date, request_id);
  if (response.status != 204) {
    fmt::format_to(append, FMT_COMPILE("content-type: {}\r\ncontent-length: {}\r\n"),
                   response.content_type, response.body.size());
  }
  out += response.fields;
  out += further_fields;
  switch (after) {
    case AfterAnswer::kKeep: break;
    case AfterAnswer::kKeepAndSaySo: out += "connection: keep-alive\r\n"; break;
    case AfterAnswer::kClose: out += "connection: close\r\n"; break;
  }
  out += "\r\n";
}

}  // namespace bouquet::ivy::http
