#include "client/request_body.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json.h"

namespace bouquet::client {
namespace {

void AppendInput(const EmbedInput& input, std::string& out) {
  if (const auto* text = std::get_if<std::string>(&input)) {
    AppendJsonString(*text, out);
    return;
  }
  fmt::format_to(std::back_inserter(out), "[{}]",
                 fmt::join(std::get<std::vector<int32_t>>(input), ","));
}

void AppendInputs(const std::vector<EmbedInput>& inputs, std::string& out) {
  out += '[';
  for (const EmbedInput& input : inputs) {
    AppendInput(input, out);
    out += ',';
  }
  out.back() = ']';
}

std::string_view DefaultRoute(Dialect dialect) {
  return dialect == Dialect::kTei ? "/embed" : "/v1/embeddings";
}

std::string SharedHead(const ClientOptions& options) {
  std::string head = fmt::format("Host: {}\r\nUser-Agent: bouquet\r\n", options.url.Authority());
  if (!options.api_key.empty()) {
    head += fmt::format("Authorization: Bearer {}\r\n", options.api_key);
  }
  return head;
}

}  // namespace

std::string RequestBody(const ClientOptions& options, const std::vector<EmbedInput>& inputs) {
  std::string body;
  if (options.dialect == Dialect::kTei) {
    body = "{\"inputs\":";
    AppendInputs(inputs, body);
    return body + "}";
  }
  body = "{\"input\":";
  AppendInputs(inputs, body);
  if (!options.model.empty()) {
    body += ",\"model\":";
    AppendJsonString(options.model, body);
  }
  return body + (options.base64 ? ",\"encoding_format\":\"base64\"}" : "}");
}

std::string HttpRequestBytes(const ClientOptions& options, const std::vector<EmbedInput>& inputs) {
  const std::string body = RequestBody(options, inputs);
  return fmt::format(
      "POST {}{} HTTP/1.1\r\n{}Content-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      options.url.path, options.route.empty() ? DefaultRoute(options.dialect) : options.route,
      SharedHead(options), body.size(), body);
}

std::string HttpGetBytes(const ClientOptions& options, std::string_view path) {
  return fmt::format("GET {}{} HTTP/1.1\r\n{}\r\n", options.url.path, path, SharedHead(options));
}

}  // namespace bouquet::client
