#include "base/json.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>

namespace bouquet {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

Status WrongType(const std::string& where, std::string_view key, std::string_view expected,
                 element found) {
  return InvalidArgument(
      fmt::format("{}: \"{}\" must be {}, not {}", where, key, expected, JsonTypeName(found)),
      std::string(key));
}

Status Missing(const std::string& where, std::string_view key) {
  return InvalidArgument(fmt::format("{}: \"{}\" is missing", where, key), std::string(key));
}

}  // namespace

Result<JsonDocument> JsonDocument::Parse(std::string_view text, std::string source,
                                         size_t max_depth) {
  JsonDocument document;
  document.source_ = std::move(source);
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  // The parser refuses a capacity below its padding, hence the floor.
  if (document.parser_->allocate(std::max<size_t>(text.size(), 64), max_depth) !=
      simdjson::SUCCESS) {
    return ResourceExhausted(
        fmt::format("{}: no memory to parse {} bytes", document.source_, text.size()));
  }
  const auto error = document.parser_->parse(text.data(), text.size()).get(document.root_);
  if (error != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: not valid JSON: {}", document.source_, simdjson::error_message(error)));
  }
  return document;
}

Result<JsonDocument> JsonDocument::ParseFile(const std::filesystem::path& path, size_t max_depth) {
  simdjson::padded_string text;
  if (simdjson::padded_string::load(path.string()).get(text) != simdjson::SUCCESS) {
    return NotFound(fmt::format("cannot read {}", path.string()));
  }
  return Parse(text, path.string(), max_depth);
}

Result<JsonObject> JsonObject::From(element value, std::string where) {
  simdjson::dom::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: must be a JSON object, not {}", where, JsonTypeName(value)));
  }
  return JsonObject(object, std::move(where));
}

std::optional<element> JsonObject::Element(std::string_view key) const {
  element value;
  if (object_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) {
    return std::nullopt;
  }
  return value;
}

bool JsonObject::Has(std::string_view key) const { return Element(key).has_value(); }

Result<std::optional<std::string>> JsonObject::String(std::string_view key) const {
  const std::optional<element> value = Element(key);
  if (!value) {
    return std::optional<std::string>();
  }
  std::string_view text;
  if (value->get_string().get(text) != simdjson::SUCCESS) {
    return WrongType(where_, key, "a string", *value);
  }
  return std::optional<std::string>(text);
}

Result<std::optional<int64_t>> JsonObject::Integer(std::string_view key, int64_t minimum,
                                                   int64_t maximum) const {
  const std::optional<element> value = Element(key);
  if (!value) {
    return std::optional<int64_t>();
  }
  int64_t number = 0;
  if (value->get_int64().get(number) != simdjson::SUCCESS) {
    return WrongType(where_, key, "an integer", *value);
  }
  if (number < minimum || number > maximum) {
    return InvalidArgument(
        fmt::format("{}: \"{}\" must be {}..{}, not {}", where_, key, minimum, maximum, number),
        std::string(key));
  }
  return std::optional<int64_t>(number);
}

Result<std::optional<double>> JsonObject::Number(std::string_view key) const {
  const std::optional<element> value = Element(key);
  if (!value) {
    return std::optional<double>();
  }
  double number = 0;
  if (value->get_double().get(number) != simdjson::SUCCESS) {
    return WrongType(where_, key, "a number", *value);
  }
  return std::optional<double>(number);
}

Result<std::optional<bool>> JsonObject::Bool(std::string_view key) const {
  const std::optional<element> value = Element(key);
  if (!value) {
    return std::optional<bool>();
  }
  bool flag = false;
  if (value->get_bool().get(flag) != simdjson::SUCCESS) {
    return WrongType(where_, key, "true or false", *value);
  }
  return std::optional<bool>(flag);
}

Result<std::optional<JsonObject>> JsonObject::Object(std::string_view key) const {
  const std::optional<element> value = Element(key);
  if (!value) {
    return std::optional<JsonObject>();
  }
  ASSIGN_OR_RETURN(JsonObject object, From(*value, fmt::format("{}: \"{}\"", where_, key)));
  return std::optional<JsonObject>(std::move(object));
}

Result<int64_t> JsonObject::RequiredInteger(std::string_view key, int64_t minimum,
                                            int64_t maximum) const {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, Integer(key, minimum, maximum));
  if (!value) {
    return Missing(where_, key);
  }
  return *value;
}

Result<std::string> JsonObject::RequiredString(std::string_view key) const {
  ASSIGN_OR_RETURN(std::optional<std::string> value, String(key));
  if (!value) {
    return Missing(where_, key);
  }
  return *std::move(value);
}

Result<bool> JsonObject::RequiredBool(std::string_view key) const {
  ASSIGN_OR_RETURN(const std::optional<bool> value, Bool(key));
  if (!value) {
    return Missing(where_, key);
  }
  return *value;
}

void AppendJsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  size_t begin = 0;  // everything from here to i needs no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') {
      continue;
    }
    out.append(text, begin, i - begin);
    begin = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text, begin);
  out.push_back('"');
}

void AppendJsonFloat(float value, std::string& out) {
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
}

std::string_view JsonTypeName(element value) {
  switch (value.type()) {
    case element_type::ARRAY: return "array";
    case element_type::OBJECT: return "object";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE: return "number";
    case element_type::STRING: return "string";
    case element_type::BOOL: return "boolean";
    case element_type::NULL_VALUE: return "null";
  }
  return "unknown";
}

}  // namespace bouquet
