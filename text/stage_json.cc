#include "text/stage_json.h"

#include "text/unicode/utf8.h"

namespace bouquet::text {

Status NotServed(const JsonObject& stage, std::string_view what, std::string_view kind) {
  return Unimplemented(fmt::format("{}: {} is not served: {}", stage.where(), what, kind), "type");
}

Result<StagePattern> ParsePattern(const JsonObject& stage, std::string_view what) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> pattern, stage.Object("pattern"));
  if (!pattern) {
    return InvalidArgument(fmt::format("{}: \"pattern\" is missing", stage.where()), "pattern");
  }
  StagePattern parsed = {.is_regex = pattern->Has("Regex")};
  ASSIGN_OR_RETURN(parsed.text, pattern->RequiredString(parsed.is_regex ? "Regex" : "String"));
  if (parsed.text.empty()) {
    return NotServed(stage, what, "with an empty pattern");
  }
  return parsed;
}

Result<std::shared_ptr<const Regex>> CompilePattern(const JsonObject& stage,
                                                    const StagePattern& pattern) {
  Result<std::shared_ptr<const Regex>> regex = Regex::Compile(pattern.text);
  if (!regex.ok()) {
    const Status& why = regex.status();
    return Status(why.code(), fmt::format("{}: {}", stage.where(), why.message()), "pattern");
  }
  return regex;
}

Result<std::string> ParseContent(const JsonObject& stage) {
  ASSIGN_OR_RETURN(std::string content, stage.RequiredString("content"));
  if (content.size() > kMaxContentBytes) {
    return InvalidArgument(fmt::format("{}: \"content\" is too long: {} bytes, limit {}",
                                       stage.where(), content.size(), kMaxContentBytes),
                           "content");
  }
  return content;
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
