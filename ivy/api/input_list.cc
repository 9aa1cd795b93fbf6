#include "ivy/api/input_list.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace bouquet::ivy::api {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;

bool IsNumber(element value) {
  const element_type type = value.type();
  return type == element_type::INT64 || type == element_type::UINT64 ||
         type == element_type::DOUBLE;
}

Error Empty(std::string field) {
  return {ErrorKind::kEmptyInput,
          "input is empty: it must have at least one character or one token id", std::move(field)};
}

Error Invalid(std::string message, std::string field) {
  return {ErrorKind::kInvalidValue, std::move(message), std::move(field)};
}

/// `path` is where the list is: "input" or "input[2]".
std::optional<Error> ParseIds(array list, const std::string& path, const FieldSpec& field,
                              const ParseOptions& options, Request& request) {
  if (TakesTexts(field.mix) && !options.accept_token_ids) {
    return Invalid(
        "token ids are not accepted here, since ids of another tokenizer give silently wrong "
        "vectors (--token-input=reject): send text",
        path);
  }
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const element item : list) {
    int64_t id = 0;
    const bool integer =
        item.type() == element_type::INT64 && item.get_int64().get(id) == simdjson::SUCCESS;
    if (!integer || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return Invalid(
          fmt::format("token ids must be integers from 0 to the last row of the vocabulary, not {}",
                      ShowValue(item)),
          fmt::format("{}[{}]", path, ids.size()));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  if (ids.empty() && !field.may_be_empty) {
    return Empty(path);
  }
  request.inputs.emplace_back(std::move(ids));
  return std::nullopt;
}

std::optional<Error> ParseText(std::string_view text, std::string path, const FieldSpec& field,
                               Request& request) {
  if (text.empty() && !field.may_be_empty) {
    return Empty(std::move(path));
  }
  request.inputs.emplace_back(std::string(text));
  return std::nullopt;
}

std::optional<Error> ParseItem(element item, const FieldSpec& field, const ParseOptions& options,
                               Request& request) {
  std::string path = fmt::format("{}[{}]", field.name, request.inputs.size());
  std::string_view text;
  if (TakesTexts(field.mix) && item.get_string().get(text) == simdjson::SUCCESS) {
    return ParseText(text, std::move(path), field, request);
  }
  array ids;
  if (TakesIds(field.mix) && item.get_array().get(ids) == simdjson::SUCCESS) {
    return ParseIds(ids, path, field, options, request);
  }
  const std::string_view expected = !TakesIds(field.mix)     ? "a string"
                                    : !TakesTexts(field.mix) ? "a list of token ids"
                                                             : "a string or a list of token ids";
  return Invalid(fmt::format("must be {}, not {}", expected, ShowValue(item)), std::move(path));
}

std::string_view Expected(InputMix mix) {
  switch (mix) {
    case InputMix::kText: return "a string";
    case InputMix::kTexts: return "a string or a list of strings";
    case InputMix::kIds: return "a list of token ids";
    case InputMix::kIdLists: return "a list of token ids or a list of such lists";
    case InputMix::kUniform:
    case InputMix::kMixed: break;
  }
  return "a string, a list of strings, a list of token ids or a list of such lists";
}

std::optional<Error> CheckCount(size_t count, const FieldSpec& field, const BodySpec& spec,
                                const ParseOptions& options) {
  if (spec.contract && count > spec.contract->max_inputs &&
      options.max_inputs >= spec.contract->max_inputs) {
    return Invalid(fmt::format("too many inputs in one request: {} given, {} allowed by the {} API",
                               count, spec.contract->max_inputs, spec.contract->owner),
                   std::string(field.name));
  }
  if (count > options.max_inputs) {
    return Error{ErrorKind::kTooLarge,
                 fmt::format("too many inputs in one request: {} given, limit {} "
                             "(--max-inputs-per-request)",
                             count, options.max_inputs),
                 std::string(field.name)};
  }
  return std::nullopt;
}

}  // namespace

std::string ShowValue(element value) {
  switch (value.type()) {
    case element_type::STRING: {
      std::string shown;
      AppendJsonString(Shorten(std::string_view(value)), shown);
      return shown;
    }
    case element_type::ARRAY: return "an array";
    case element_type::OBJECT: return "an object";
    case element_type::NULL_VALUE: return "null";
    case element_type::BOOL: return bool(value) ? "true" : "false";
    case element_type::INT64: return fmt::format("{}", int64_t(value));
    case element_type::UINT64: return fmt::format("{}", uint64_t(value));
    case element_type::DOUBLE: return fmt::format("the non-integer number {}", double(value));
  }
  return "?";
}

std::optional<Error> ParseInputs(element value, const FieldSpec& field, const BodySpec& spec,
                                 const ParseOptions& options, Request& request) {
  const std::string name(field.name);
  request.inputs_field = name;
  request.inputs_are_list = false;
  std::string_view text;
  if (TakesTexts(field.mix) && value.get_string().get(text) == simdjson::SUCCESS) {
    return ParseText(text, name, field, request);
  }
  array list;
  if (field.mix == InputMix::kText || value.get_array().get(list) != simdjson::SUCCESS) {
    return Invalid(fmt::format("must be {}, not {}", Expected(field.mix), ShowValue(value)), name);
  }
  const bool is_empty = list.size() == 0;
  if (field.mix == InputMix::kIds || (is_empty && !TakesTexts(field.mix)) ||
      (TakesIds(field.mix) && !is_empty && IsNumber(list.at(0)))) {
    return ParseIds(list, name, field, options, request);
  }
  if (is_empty) {
    return Empty(name);
  }
  request.inputs_are_list = true;
  if (std::optional<Error> error = CheckCount(list.size(), field, spec, options)) {
    return error;
  }
  const element first = list.at(0);
  request.inputs.reserve(list.size());
  for (const element item : list) {
    const bool alike = item.type() == first.type();
    if (field.mix == InputMix::kUniform && !alike && (item.is_string() || item.is_array())) {
      return Invalid(fmt::format("texts and token ids do not mix in one list here: {} after {}",
                                 ShowValue(item), ShowValue(first)),
                     fmt::format("{}[{}]", name, request.inputs.size()));
    }
    if (std::optional<Error> error = ParseItem(item, field, options, request)) {
      return error;
    }
  }
  return std::nullopt;
}

}  // namespace bouquet::ivy::api
