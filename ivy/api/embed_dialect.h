#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ivy/api/dialect.h"
#include "ivy/api/field_table.h"
#include "ivy/api/request.h"

namespace bouquet::ivy::api {

/// What the renderer of an embedding answer is given.
struct EmbedAnswer {
  /// Every item of `rows` has a row, unless partial answers were asked for.
  const EncodedRows& rows;
  std::string_view model;
  VectorEncoding encoding = VectorEncoding::kFloat;
  std::string_view request_id;
};

/// One dialect's way to ask for embeddings: all that an embed route needs to know of it.
struct EmbedDialect {
  Dialect dialect;  // of errors and metrics
  BodySpec body;
  /// Whether an item that failed alone can be answered in place.
  bool has_item_errors;
  ParseResult (*parse)(std::string_view body, const ParseOptions& options);
  /// Appends the whole body.
  void (*render)(const EmbedAnswer& answer, std::string& out);
  /// The schema of the 200 answer, as a JSON text.
  std::string_view answer_schema;
};

/// What is wrong between fields that are fine alone; shared by dialects.
std::optional<Error> CheckCombinations(const Request& request);

/// The row of an item, [dimensions].
std::span<const float> RowOf(const EncodedRows& rows, size_t index);
bool HasRow(const EncodedRows& rows, size_t index);

}  // namespace bouquet::ivy::api
