#include "ivy/api/tei.h"

#include <array>
#include <utility>

#include "ivy/api/embed_fields.h"
#include "ivy/api/float_array.h"

namespace bouquet::ivy::api {
namespace {

constexpr std::array kFields = {
    FieldSpec{.name = "inputs",
              .kind = FieldKind::kInputs,
              .description =
                  "A text, the token ids of one input, or a list of either. Token ids are "
                  "used verbatim.",
              .required = true,
              .mix = InputMix::kMixed},
    kModelField,
    kNormalizeField,
    kDimensionsField,
    kTruncateField,
    kTruncationDirectionField,
    kPromptNameField,
    kPromptField,
};

constexpr BodySpec kBody = {.fields = kFields, .contract = std::nullopt, .unsupported = {}};

ParseResult Parse(std::string_view body, const ParseOptions& options) {
  Request request;
  request.dialect_over_length = text::OverLength::kTruncate;
  request.normalize = true;
  if (std::optional<Error> error = ParseBody(body, kBody, options, request)) {
    return *std::move(error);
  }
  if (std::optional<Error> error = CheckCombinations(request)) {
    return *std::move(error);
  }
  return request;
}

void Render(const EmbedAnswer& answer, std::string& out) {
  const EncodedRows& rows = answer.rows;
  const size_t num_inputs = rows.token_counts.size();
  out.reserve(out.size() + num_inputs * (rows.dimensions * kTypicalFloatChars + 2) + 2 +
              24 * rows.dimensions);
  out += '[';
  for (size_t i = 0; i < num_inputs; ++i) {
    if (i > 0) {
      out += ',';
    }
    AppendFloatArray(RowOf(rows, i), out);
  }
  out += ']';
}

constexpr std::string_view kAnswerSchema =
    R"({"type":"array","items":{"type":"array","items":{"type":"number"}}})";

}  // namespace

const EmbedDialect kTeiEmbed = {.dialect = Dialect::kTei,
                                .body = kBody,
                                .has_item_errors = false,
                                .parse = Parse,
                                .render = Render,
                                .answer_schema = kAnswerSchema};

}  // namespace bouquet::ivy::api
