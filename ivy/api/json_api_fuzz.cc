// Both dialects over arbitrary bytes. Holds: no crash; an accepted request has inputs, none empty,
// and an answer to it renders as valid JSON; a refusal has a message, and names byte or field; what
// the fast parser refuses the slow one finds a fault in, and the other way round. Does not cover:
// what the model decides (dimensions, prompts), HTTP itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "ivy/api/json_fault.h"
#include "ivy/api/openai.h"
#include "ivy/api/tei.h"

namespace bouquet::ivy::api {
namespace {

constexpr uint32_t kDimensions = 3;

EncodedRows RowsFor(const Request& request) {
  EncodedRows rows;
  rows.dimensions = kDimensions;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    rows.values.insert(rows.values.end(), {0.25F, -1e-30F, static_cast<float>(i)});
    rows.token_counts.push_back(static_cast<int32_t>(i));
    rows.truncated.push_back(i % 2);
  }
  rows.statuses.resize(request.inputs.size());
  return rows;
}

void CheckRequest(const EmbedDialect& dialect, const Request& request) {
  CHECK(!request.inputs.empty());
  for (const EncodeInput& input : request.inputs) {
    CHECK(std::visit([](const auto& content) { return !content.empty(); }, input));
  }
  const EncodedRows rows = RowsFor(request);
  std::string answer;
  dialect.render({.rows = rows, .model = request.model, .encoding = request.encoding}, answer);
  CHECK(JsonDocument::Parse(answer, "answer").ok());
}

void CheckError(const EmbedDialect& dialect, const Error& error) {
  CHECK(!error.message.empty());
  CHECK(!error.field.empty() || error.message.find("byte") != std::string::npos ||
        error.message.find("body must be a JSON object") != std::string::npos ||
        error.message.find("too many keys") != std::string::npos);
  CHECK(JsonDocument::Parse(RenderError(error, dialect.dialect, "id"), "error").ok());
}

}  // namespace

void CheckBothDialects(std::string_view body) {
  ParseOptions options;
  options.max_inputs = 64;
  options.max_json_depth = 6;
  bool malformed = false;
  for (const EmbedDialect* dialect : {&kOpenAiEmbeddings, &kTeiEmbed}) {
    const ParseResult result = dialect->parse(body, options);
    if (const Request* request = std::get_if<Request>(&result)) {
      CheckRequest(*dialect, *request);
      CHECK(!FindJsonFault(body.starts_with("\xEF\xBB\xBF") ? body.substr(3) : body,
                           options.max_json_depth));
    } else {
      const Error& error = std::get<Error>(result);
      CheckError(*dialect, error);
      malformed = malformed || error.message == "body is not valid JSON";
    }
  }
  CHECK(!malformed);  // the slow parser found nothing wrong with what the fast one refused
}

}  // namespace bouquet::ivy::api

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  bouquet::ivy::api::CheckBothDialects(body);
  return 0;
}
