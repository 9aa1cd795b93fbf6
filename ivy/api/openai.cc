#include "ivy/api/openai.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "ivy/api/base64.h"
#include "ivy/api/embed_fields.h"
#include "ivy/api/float_array.h"

namespace bouquet::ivy::api {
namespace {

constexpr std::array<std::string_view, 2> kEncodings = {"float", "base64"};

constexpr std::array kFields = {
    FieldSpec{.name = "input",
              .kind = FieldKind::kInputs,
              .description =
                  "A text, a list of texts, the token ids of one input, or a list of such "
                  "lists. Token ids are used verbatim.",
              .required = true},
    kModelField,
    FieldSpec{.name = "encoding_format",
              .kind = FieldKind::kChoice,
              .description = "Vectors as JSON numbers, or as base64 of little-endian float32.",
              .choices = kEncodings,
              .store =
                  [](const FieldValue& value, Request& request) {
                    request.encoding =
                        value.choice == 0 ? VectorEncoding::kFloat : VectorEncoding::kBase64;
                  }},
    kDimensionsField,
    FieldSpec{.name = "user",
              .kind = FieldKind::kString,
              .description = "The caller's own mark; has no effect.",
              .store = [](const FieldValue&, Request&) {}},
    kPromptField,
    kPromptNameField,
    kNormalizeField,
    kTruncateField,
    kTruncationDirectionField,
    FieldSpec{.name = "truncate_prompt_tokens",
              .kind = FieldKind::kInteger,
              .description =
                  "Truncate each input to this many tokens, special tokens included; -1: "
                  "the model's maximum.",
              .minimum = -1,
              .store = [](const FieldValue& value,
                          Request& request) { request.max_tokens = value.number; }},
    FieldSpec{
        .name = "truncation_side",
        .kind = FieldKind::kChoice,
        .description = "The end that is dropped: left keeps the last tokens, right the first.",
        .choices = kSides,
        .any_case = true,
        .store = [](const FieldValue& value,
                    Request& request) { request.truncation_side = SideOf(value.choice); }},
    FieldSpec{
        .name = "partial",
        .kind = FieldKind::kBoolean,
        .description = "Answer 200 with an error in the place of each input that failed alone.",
        .store = [](const FieldValue& value,
                    Request& request) { request.allow_partial = value.flag; }},
};

// Fields by which other dialects would be recognised on this route, and output types to come.
constexpr std::array<std::string_view, 11> kUnsupported = {
    "task",           "late_chunking",      "embedding_type",
    "normalized",     "return_multivector", "embed_dtype",
    "use_activation", "messages",           "output_dtype",
    "endianness",     "add_special_tokens"};

constexpr BodySpec kBody = {
    .fields = kFields,
    .contract = InputContract{.owner = "OpenAI", .max_inputs = 2048},
    .unsupported = kUnsupported,
};

ParseResult ParseWith(text::OverLength over_length, std::string_view body,
                      const ParseOptions& options) {
  Request request;
  request.dialect_over_length = over_length;
  if (std::optional<Error> error = ParseBody(body, kBody, options, request)) {
    return *std::move(error);
  }
  if (std::optional<Error> error = CheckCombinations(request)) {
    return *std::move(error);
  }
  return request;
}

ParseResult Parse(std::string_view body, const ParseOptions& options) {
  return ParseWith(text::OverLength::kError, body, options);
}

ParseResult ParseAsTei(std::string_view body, const ParseOptions& options) {
  return ParseWith(text::OverLength::kTruncate, body, options);
}

void AppendItem(const EmbedAnswer& answer, size_t index, std::string& out) {
  const EncodedRows& rows = answer.rows;
  const auto append = std::back_inserter(out);
  if (!HasRow(rows, index)) {
    fmt::format_to(append, FMT_COMPILE(R"({{"object":"error","index":{},"error":)"), index);
    AppendOpenAiError(ErrorFrom(rows.statuses[index]), answer.request_id, out);
    out += '}';
    return;
  }
  fmt::format_to(append, FMT_COMPILE(R"({{"object":"embedding","index":{},"embedding":)"), index);
  if (answer.encoding == VectorEncoding::kBase64) {
    out += '"';
    AppendBase64Floats(RowOf(rows, index), out);
    out += '"';
  } else {
    AppendFloatArray(RowOf(rows, index), out);
  }
  if (rows.truncated[index] != 0) {
    fmt::format_to(append, FMT_COMPILE(R"(,"truncated":true,"token_count":{})"),
                   rows.token_counts[index]);
  }
  out += '}';
}

void Render(const EmbedAnswer& answer, std::string& out) {
  const EncodedRows& rows = answer.rows;
  const size_t num_inputs = rows.token_counts.size();
  const size_t row_chars = answer.encoding == VectorEncoding::kBase64
                               ? rows.dimensions * sizeof(float) * 4 / 3 + 4
                               : rows.dimensions * kTypicalFloatChars;
  // The last term is the room that the last block of floats may need for a moment.
  out.reserve(out.size() + num_inputs * (row_chars + 64) + 256 + 24 * rows.dimensions);
  out += R"({"object":"list","data":[)";
  for (size_t i = 0; i < num_inputs; ++i) {
    if (i > 0) {
      out += ',';
    }
    AppendItem(answer, i, out);
  }
  out += R"(],"model":)";
  AppendJsonString(answer.model, out);
  const int64_t tokens = rows.total_tokens();
  fmt::format_to(std::back_inserter(out),
                 FMT_COMPILE(R"(,"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})"), tokens,
                 tokens);
}

constexpr std::string_view kAnswerSchema =
    R"({"type":"object","required":["object","data","model","usage"],"properties":{)"
    R"("object":{"const":"list"},"model":{"type":"string"},)"
    R"("data":{"type":"array","items":{"type":"object","required":["object","index"],"properties":{)"
    R"("object":{"enum":["embedding","error"]},"index":{"type":"integer"},)"
    R"("embedding":{"oneOf":[{"type":"array","items":{"type":"number"}},)"
    R"({"type":"string","contentEncoding":"base64"}]},)"
    R"("truncated":{"type":"boolean"},"token_count":{"type":"integer"},"error":{"type":"object"}}}},)"
    R"("usage":{"type":"object","properties":{"prompt_tokens":{"type":"integer"},)"
    R"("total_tokens":{"type":"integer"}}}}})";

}  // namespace

const EmbedDialect kOpenAiEmbeddings = {.dialect = Dialect::kOpenAi,
                                        .body = kBody,
                                        .has_item_errors = true,
                                        .parse = Parse,
                                        .render = Render,
                                        .answer_schema = kAnswerSchema};

const EmbedDialect kTeiOpenAiEmbeddings = {.dialect = Dialect::kOpenAi,
                                           .body = kBody,
                                           .has_item_errors = true,
                                           .parse = ParseAsTei,
                                           .render = Render,
                                           .answer_schema = kAnswerSchema};

}  // namespace bouquet::ivy::api
