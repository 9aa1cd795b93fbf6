#include "ivy/api/field_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/json.h"
#include "ivy/api/input_list.h"
#include "ivy/api/json_fault.h"

namespace bouquet::ivy::api {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::key_value_pair;
using simdjson::dom::object;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Error Invalid(std::string message, std::string field) {
  return {ErrorKind::kInvalidValue, std::move(message), std::move(field)};
}

/// Below this many keys, comparing all pairs is quicker than sorting.
constexpr size_t kFewKeys = 16;

std::optional<std::string_view> DuplicateKey(object fields) {
  if (fields.size() <= kFewKeys) {
    size_t position = 0;
    for (const key_value_pair& pair : fields) {
      size_t before = 0;
      for (const key_value_pair& other : fields) {
        if (before++ == position) {
          break;
        }
        if (other.key == pair.key) {
          return pair.key;
        }
      }
      ++position;
    }
    return std::nullopt;
  }
  std::vector<std::string_view> keys;
  for (const key_value_pair& pair : fields) {
    keys.push_back(pair.key);
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::nullopt : std::optional(*twice);
}

/// An object with more keys than any client sends; keeps the look for duplicates cheap.
constexpr size_t kMaxKeys = 4096;

/// A key as a path names it: the empty one must be seen.
std::string NameOf(std::string_view key) { return key.empty() ? R"("")" : Shorten(key); }

std::optional<Error> CheckKeys(object fields) {
  if (fields.size() > kMaxKeys) {
    return Invalid(
        fmt::format("too many keys in one object: {}, limit {}", fields.size(), kMaxKeys), "");
  }
  if (const std::optional<std::string_view> key = DuplicateKey(fields)) {
    return Invalid("the key appears twice in one object", NameOf(*key));
  }
  return std::nullopt;
}

/// The path of an error found inside `outer`, which is a key or "[i]".
std::optional<Error> Within(std::string_view outer, std::optional<Error> error) {
  if (error) {
    const bool needs_point = !error->field.empty() && error->field.front() != '[';
    error->field = Shorten(fmt::format("{}{}{}", outer, needs_point ? "." : "", error->field));
  }
  return error;
}

/// Holds a value that nothing else reads to the rules that hold everywhere: depth, and no key
/// twice. Recursion is bounded by the depth.
std::optional<Error> CheckUnread(element value, size_t depth, const ParseOptions& options) {
  if (!value.is_object() && !value.is_array()) {
    return std::nullopt;
  }
  if (depth >= options.max_json_depth) {
    return Error{ErrorKind::kMalformedBody,
                 fmt::format("too many arrays and objects inside one another: limit {} "
                             "(--max-json-depth)",
                             options.max_json_depth),
                 ""};
  }
  if (value.is_array()) {
    size_t index = 0;
    for (const element item : array(value)) {
      if (std::optional<Error> error = CheckUnread(item, depth + 1, options)) {
        return Within(fmt::format("[{}]", index), std::move(error));
      }
      ++index;
    }
    return std::nullopt;
  }
  const object fields = value;
  if (std::optional<Error> error = CheckKeys(fields)) {
    return error;
  }
  for (const key_value_pair& pair : fields) {
    if (std::optional<Error> error = CheckUnread(pair.value, depth + 1, options)) {
      return Within(NameOf(pair.key), std::move(error));
    }
  }
  return std::nullopt;
}

bool SameName(std::string_view a, std::string_view b, bool any_case) {
  return any_case ? std::equal(a.begin(), a.end(), b.begin(), b.end(),
                               [](char x, char y) {
                                 return std::tolower(static_cast<unsigned char>(x)) ==
                                        std::tolower(static_cast<unsigned char>(y));
                               })
                  : a == b;
}

std::string AllowedRange(const FieldSpec& field) {
  if (field.minimum == std::numeric_limits<int64_t>::min()) {
    return "an integer";
  }
  return fmt::format("an integer of at least {}", field.minimum);
}

std::optional<Error> ReadValue(element value, const FieldSpec& field, FieldValue& out) {
  const auto wrong = [&](std::string_view expected) {
    return Invalid(fmt::format("must be {}, not {}", expected, ShowValue(value)),
                   std::string(field.name));
  };
  switch (field.kind) {
    case FieldKind::kString:
      return value.get_string().get(out.text) == simdjson::SUCCESS
                 ? std::nullopt
                 : std::optional(wrong("a string"));
    case FieldKind::kBoolean:
      return value.get_bool().get(out.flag) == simdjson::SUCCESS
                 ? std::nullopt
                 : std::optional(wrong("true or false"));
    case FieldKind::kInteger: {
      const bool integer = value.type() == element_type::INT64 &&
                           value.get_int64().get(out.number) == simdjson::SUCCESS;
      if (!integer || out.number < field.minimum || out.number > field.maximum) {
        return wrong(AllowedRange(field));
      }
      return std::nullopt;
    }
    case FieldKind::kChoice: {
      std::string_view name;
      if (value.get_string().get(name) == simdjson::SUCCESS) {
        for (size_t i = 0; i < field.choices.size(); ++i) {
          if (SameName(name, field.choices[i], field.any_case)) {
            out.choice = i;
            return std::nullopt;
          }
        }
      }
      return wrong(fmt::format("one of \"{}\"", fmt::join(field.choices, "\", \"")));
    }
    case FieldKind::kInputs: break;
  }
  CHECK(field.kind != FieldKind::kInputs);
  return std::nullopt;
}

const FieldSpec* FindField(const BodySpec& spec, std::string_view key) {
  for (const FieldSpec& field : spec.fields) {
    if (field.name == key) {
      return &field;
    }
  }
  return nullptr;
}

std::optional<Error> ReadUnknown(std::string_view key, element value, const BodySpec& spec,
                                 const ParseOptions& options) {
  if (std::find(spec.unsupported.begin(), spec.unsupported.end(), key) != spec.unsupported.end()) {
    return Invalid("this field is not supported on this route", std::string(key));
  }
  if (options.strict_fields) {
    std::vector<std::string_view> names;
    for (const FieldSpec& field : spec.fields) {
      names.push_back(field.name);
    }
    return Invalid(
        fmt::format("unknown field (--strict-fields); known: {}", fmt::join(names, ", ")),
        NameOf(key));
  }
  return Within(NameOf(key), CheckUnread(value, 1, options));
}

std::optional<Error> ReadFields(object fields, const BodySpec& spec, const ParseOptions& options,
                                Request& request) {
  if (std::optional<Error> error = CheckKeys(fields)) {
    return error;
  }
  for (const key_value_pair& pair : fields) {
    const FieldSpec* field = FindField(spec, pair.key);
    std::optional<Error> error;
    if (field == nullptr) {
      error = ReadUnknown(pair.key, pair.value, spec, options);
    } else if (pair.value.is_null() && !field->required) {
      continue;
    } else if (field->kind == FieldKind::kInputs) {
      error = ParseInputs(pair.value, *field, spec, options, request);
    } else {
      FieldValue value;
      error = ReadValue(pair.value, *field, value);
      if (!error) {
        field->store(value, request);
      }
    }
    if (error) {
      return error;
    }
  }
  for (const FieldSpec& field : spec.fields) {
    element ignored;
    if (field.required && fields.at_key(field.name).get(ignored) != simdjson::SUCCESS) {
      return Invalid("the field is required", std::string(field.name));
    }
  }
  return std::nullopt;
}

/// Says where a body that the parser refused is wrong.
Error DescribeFault(std::string_view body, size_t skipped, const ParseOptions& options) {
  const std::optional<JsonFault> fault = FindJsonFault(body, options.max_json_depth);
  if (!fault) {
    return {ErrorKind::kMalformedBody, "body is not valid JSON", {}};
  }
  std::string field = Shorten(fault->path);
  if (fault->kind == JsonFault::Kind::kNumberRange) {
    return Invalid(fmt::format("{}, at byte {} of the body", fault->what, fault->offset + skipped),
                   std::move(field));
  }
  std::string limit = fault->kind == JsonFault::Kind::kTooDeep
                          ? fmt::format(": limit {} (--max-json-depth)", options.max_json_depth)
                          : std::string();
  return {ErrorKind::kMalformedBody,
          fmt::format("body is not valid JSON at byte {}: {}{}", fault->offset + skipped,
                      fault->what, limit),
          std::move(field)};
}

}  // namespace

std::string_view WithoutByteOrderMark(std::string_view body) {
  return body.starts_with(kByteOrderMark) ? body.substr(kByteOrderMark.size()) : body;
}

std::string Shorten(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) {
    return std::string(text);
  }
  size_t end = max_bytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::optional<Error> ParseBody(std::string_view body, const BodySpec& spec,
                               const ParseOptions& options, Request& request) {
  const size_t whole = body.size();
  body = WithoutByteOrderMark(body);
  const size_t skipped = whole - body.size();
  // The parser does not count an empty innermost array or object, and counts the root: one more
  // lets every text through that is within the limit, and the look below finds the rest.
  const Result<JsonDocument> document =
      JsonDocument::Parse(body, "body", options.max_json_depth + 1);
  if (!document.ok()) {
    return DescribeFault(body, skipped, options);
  }
  const element root = document->root();
  if (!root.is_object()) {
    return Invalid(fmt::format("the body must be a JSON object, not {}", ShowValue(root)), "");
  }
  return ReadFields(root, spec, options, request);
}

}  // namespace bouquet::ivy::api
