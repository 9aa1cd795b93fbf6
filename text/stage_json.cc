#include "text/stage_json.h"

#include "text/unicode/utf8.h"

namespace bouquet::text {

Status NotServed(const JsonObject& stage, std::string_view what, std::string_view kind) {
  return Unimplemented(fmt::format("{}: {} is not served: {}", stage.where(), what, kind), "type");
}

Result<std::string> ParseLiteralPattern(const JsonObject& stage, std::string_view what) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> pattern, stage.Object("pattern"));
  if (!pattern) {
    return InvalidArgument(fmt::format("{}: \"pattern\" is missing", stage.where()), "pattern");
  }
  if (pattern->Has("Regex")) {
    return NotServed(stage, what, "with a Regex pattern");
  }
  ASSIGN_OR_RETURN(std::string text, pattern->RequiredString("String"));
  if (text.empty()) {
    return NotServed(stage, what, "with an empty pattern");
  }
  return text;
}

Result<std::string> RequiredCharacter(const JsonObject& stage, std::string_view key) {
  ASSIGN_OR_RETURN(std::string text, stage.RequiredString(key));
  if (unicode::CountCodePoints(text) != 1) {
    return InvalidArgument(
        fmt::format("{}: \"{}\" must be one character: \"{}\"", stage.where(), key, text),
        std::string(key));
  }
  return text;
}

}  // namespace bouquet::text
