#include "ivy/api/text_dialect.h"

#include <array>
#include <iterator>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/json.h"
#include "ivy/api/embed_fields.h"

namespace bouquet::ivy::api {
namespace {

constexpr FieldSpec kAddSpecialTokensField = {
    .name = "add_special_tokens",
    .kind = FieldKind::kBoolean,
    .description = "With the special tokens around the text, as it is computed (the default).",
    .store = [](const FieldValue& value, Request& request) {
      request.add_special_tokens = value.flag;
    }};

constexpr FieldSpec kCountOnlyField = {
    .name = "count_only",
    .kind = FieldKind::kBoolean,
    .description = "Answer the number of tokens alone.",
    .store = [](const FieldValue& value, Request& request) { request.count_only = value.flag; }};

// --- TEI ---

constexpr std::array kTeiTokenizeFields = {
    FieldSpec{.name = "inputs",
              .kind = FieldKind::kInputs,
              .description = "A text or a list of texts.",
              .required = true,
              .mix = InputMix::kTexts,
              .may_be_empty = true},
    kModelField,
    kAddSpecialTokensField,
    kPromptNameField,
    kCountOnlyField,
};

constexpr std::array kTeiDecodeFields = {
    FieldSpec{.name = "ids",
              .kind = FieldKind::kInputs,
              .description = "The token ids of one text, or a list of such lists.",
              .required = true,
              .mix = InputMix::kIdLists,
              .may_be_empty = true},
    kModelField,
    FieldSpec{.name = "skip_special_tokens",
              .kind = FieldKind::kBoolean,
              .description = "Leave special tokens out of the text (the default).",
              .store = [](const FieldValue& value,
                          Request& request) { request.skip_special_tokens = value.flag; }},
};

void AppendTeiToken(const TextAnswer& answer, size_t index, std::string& out) {
  const bool special = answer.tokens.special_mask[index] != 0;
  const text::ByteSpan span = answer.tokens.spans[index];
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{{\"id\":{},\"text\":"),
                 answer.tokens.ids[index]);
  if (special) {
    AppendJsonString(answer.pieces[index], out);
    out += ",\"special\":true,\"start\":null,\"stop\":null}";
    return;
  }
  // A span within a character cannot be: see text/token_spans.h.
  AppendJsonString(std::string_view(answer.text).substr(span.begin, span.end - span.begin), out);
  fmt::format_to(std::back_inserter(out),
                 FMT_COMPILE(",\"special\":false,\"start\":{},\"stop\":{}}}"), span.begin,
                 span.end);
}

void RenderTeiTokens(const TextAnswers& answers, std::string& out) {
  out += '[';
  for (size_t i = 0; i < answers.answers.size(); ++i) {
    const TextAnswer& answer = answers.answers[i];
    out += i == 0 ? "" : ",";
    if (answers.count_only) {
      out += std::to_string(answer.tokens.ids.size());
      continue;
    }
    out += '[';
    for (size_t j = 0; j < answer.tokens.ids.size(); ++j) {
      out += j == 0 ? "" : ",";
      AppendTeiToken(answer, j, out);
    }
    out += ']';
  }
  out += ']';
}

void RenderTeiTexts(const TextAnswers& answers, std::string& out) {
  out += '[';
  for (size_t i = 0; i < answers.answers.size(); ++i) {
    out += i == 0 ? "" : ",";
    AppendJsonString(answers.answers[i].text, out);
  }
  out += ']';
}

constexpr std::string_view kTeiTokenizeSchema =
    R"({"oneOf":[{"type":"array","items":{"type":"array","items":{"type":"object","properties":{)"
    R"("id":{"type":"integer"},"text":{"type":"string"},"special":{"type":"boolean"},)"
    R"("start":{"type":["integer","null"]},"stop":{"type":["integer","null"]}}}}},)"
    R"({"type":"array","items":{"type":"integer"}}]})";
constexpr std::string_view kTeiDecodeSchema = R"({"type":"array","items":{"type":"string"}})";

// --- vLLM ---

constexpr std::array kVllmTokenizeFields = {
    FieldSpec{.name = "prompt",
              .kind = FieldKind::kInputs,
              .description = "A text.",
              .required = true,
              .mix = InputMix::kText,
              .may_be_empty = true},
    kModelField,
    kAddSpecialTokensField,
    FieldSpec{.name = "return_token_strs",
              .kind = FieldKind::kBoolean,
              .description = "With the tokens' strings as the vocabulary spells them.",
              .store = [](const FieldValue& value,
                          Request& request) { request.return_token_strings = value.flag; }},
    kCountOnlyField,
};
// Chat templates are not served.
constexpr std::array<std::string_view, 6> kChatFields = {
    "messages",      "add_generation_prompt", "continue_final_message",
    "chat_template", "chat_template_kwargs",  "tools"};

constexpr std::array kVllmDetokenizeFields = {
    FieldSpec{.name = "tokens",
              .kind = FieldKind::kInputs,
              .description = "The token ids of a text.",
              .required = true,
              .mix = InputMix::kIds,
              .may_be_empty = true},
    kModelField,
};

void RenderVllmTokens(const TextAnswers& answers, std::string& out) {
  const TextAnswer& answer = answers.answers.front();
  const auto append = std::back_inserter(out);
  fmt::format_to(append, FMT_COMPILE("{{\"count\":{},\"max_model_len\":{},\"tokens\":["),
                 answer.tokens.ids.size(), answers.max_input_tokens);
  const size_t shown = answers.count_only ? 0 : answer.tokens.ids.size();
  for (size_t i = 0; i < shown; ++i) {
    fmt::format_to(append, FMT_COMPILE("{}{}"), i == 0 ? "" : ",", answer.tokens.ids[i]);
  }
  if (!answers.return_token_strings) {
    out += "],\"token_strs\":null}";
    return;
  }
  out += "],\"token_strs\":[";
  for (size_t i = 0; i < shown; ++i) {
    out += i == 0 ? "" : ",";
    AppendJsonString(answer.pieces[i], out);
  }
  out += "]}";
}

void RenderVllmText(const TextAnswers& answers, std::string& out) {
  out += "{\"prompt\":";
  AppendJsonString(answers.answers.front().text, out);
  out += '}';
}

constexpr std::string_view kVllmTokenizeSchema =
    R"({"type":"object","properties":{"count":{"type":"integer"},"max_model_len":)"
    R"({"type":"integer"},"tokens":{"type":"array","items":{"type":"integer"}},"token_strs":)"
    R"({"type":["array","null"],"items":{"type":"string"}}}})";
constexpr std::string_view kVllmDetokenizeSchema =
    R"({"type":"object","properties":{"prompt":{"type":"string"}}})";

}  // namespace

const TextDialect kTeiTokenize = {
    .dialect = Dialect::kTei,
    .body = {.fields = kTeiTokenizeFields, .contract = std::nullopt, .unsupported = {}},
    .skips_special_tokens = true,
    .render = RenderTeiTokens,
    .answer_schema = kTeiTokenizeSchema};

const TextDialect kTeiDecode = {
    .dialect = Dialect::kTei,
    .body = {.fields = kTeiDecodeFields, .contract = std::nullopt, .unsupported = {}},
    .skips_special_tokens = true,
    .render = RenderTeiTexts,
    .answer_schema = kTeiDecodeSchema};

const TextDialect kVllmTokenize = {
    .dialect = Dialect::kOpenAi,
    .body = {.fields = kVllmTokenizeFields, .contract = std::nullopt, .unsupported = kChatFields},
    .skips_special_tokens = false,
    .render = RenderVllmTokens,
    .answer_schema = kVllmTokenizeSchema};

const TextDialect kVllmDetokenize = {
    .dialect = Dialect::kOpenAi,
    .body = {.fields = kVllmDetokenizeFields, .contract = std::nullopt, .unsupported = {}},
    .skips_special_tokens = false,
    .render = RenderVllmText,
    .answer_schema = kVllmDetokenizeSchema};

const TextDialect& TokenizeDialectOf(std::string_view body, const ParseOptions& options) {
  const Result<JsonDocument> document =
      JsonDocument::Parse(WithoutByteOrderMark(body), "body", options.max_json_depth + 1);
  simdjson::dom::object fields;
  if (!document.ok() || document->root().get_object().get(fields) != simdjson::SUCCESS) {
    return kTeiTokenize;
  }
  simdjson::dom::element ignored;
  const bool is_vllm = fields["prompt"].get(ignored) == simdjson::SUCCESS ||
                       fields["messages"].get(ignored) == simdjson::SUCCESS;
  return is_vllm ? kVllmTokenize : kTeiTokenize;
}

}  // namespace bouquet::ivy::api
