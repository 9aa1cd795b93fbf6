#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "ivy/api/request.h"

namespace bouquet::ivy::api {

enum class FieldKind : uint8_t { kString, kBoolean, kInteger, kChoice, kInputs };

/// A field's value, already checked against its row. Only the member of its kind is set.
struct FieldValue {
  std::string_view text;
  int64_t number = 0;
  bool flag = false;
  size_t choice = 0;  // index into FieldSpec::choices
};

/// Which shapes `kInputs` takes.
enum class InputMix : uint8_t {
  kUniform,  // text, [text, …], [id, …] or [[id, …], …]
  kMixed,    // text, [id, …] or [text or [id, …], …]
  kText,     // text
  kTexts,    // text or [text, …]
  kIds,      // [id, …]
  kIdLists,  // [id, …] or [[id, …], …]
};
constexpr bool TakesTexts(InputMix mix) { return mix <= InputMix::kTexts; }
constexpr bool TakesIds(InputMix mix) {
  return mix <= InputMix::kMixed || mix == InputMix::kIds || mix == InputMix::kIdLists;
}

/// One field of a dialect's body: what the parser accepts and what the OpenAPI document says, from
/// the same row. A null is the same as an absent field, except where the field is required.
struct FieldSpec {
  std::string_view name;
  FieldKind kind;
  std::string_view description;
  bool required = false;
  int64_t minimum = std::numeric_limits<int64_t>::min();               // kInteger
  int64_t maximum = std::numeric_limits<int32_t>::max();               // kInteger
  std::span<const std::string_view> choices = {};                      // kChoice
  bool any_case = false;                                               // kChoice
  InputMix mix = InputMix::kUniform;                                   // kInputs
  bool may_be_empty = false;                                           // kInputs: one of them
  void (*store)(const FieldValue& value, Request& request) = nullptr;  // not for kInputs
};

/// The number of inputs that a dialect's own contract fixes: beyond it the request is invalid, and
/// no flag raises it.
struct InputContract {
  std::string_view owner;
  size_t max_inputs;
};

/// The body of one route.
struct BodySpec {
  std::span<const FieldSpec> fields;
  std::optional<InputContract> contract;
  /// Fields that would change the result in a way this route does not offer. They are known, so
  /// they are refused instead of ignored.
  std::span<const std::string_view> unsupported;
};

/// Reads `body` by its table into `request`, whose defaults the dialect has set. Returns the first
/// error by position. Duplicate keys anywhere are an invalid value.
std::optional<Error> ParseBody(std::string_view body, const BodySpec& spec,
                               const ParseOptions& options, Request& request);

/// Editors put one in front; it is no part of the body.
std::string_view WithoutByteOrderMark(std::string_view body);

/// `text` for an error message: at most `max_bytes` of it, cut between characters.
std::string Shorten(std::string_view text, size_t max_bytes = 64);

}  // namespace bouquet::ivy::api
