#include "text/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "text/unicode/utf8.h"
#include "text/vocabulary.h"

namespace bouquet::text {

Result<std::string> ReadTokenizerClass(const JsonObject& config) {
  constexpr std::string_view kFast = "Fast";
  ASSIGN_OR_RETURN(const std::optional<std::string> stated, config.String("tokenizer_class"));
  std::string name = stated.value_or("");
  if (name.ends_with(kFast)) {
    name.resize(name.size() - kFast.size());
  }
  return name;
}

Status ReadToken(const JsonObject& config, std::string_view key, std::string& token) {
  const std::optional<simdjson::dom::element> value = config.Element(key);
  if (value && value->is_object()) {
    ASSIGN_OR_RETURN(const std::optional<JsonObject> object, config.Object(key));
    ASSIGN_OR_RETURN(token, object->RequiredString("content"));
    return {};
  }
  ASSIGN_OR_RETURN(std::optional<std::string> stated, config.String(key));
  token = std::move(stated).value_or(token);
  return {};
}

Status ReadFlag(const JsonObject& object, std::string_view key, bool& flag) {
  ASSIGN_OR_RETURN(const std::optional<bool> stated, object.Bool(key));
  flag = stated.value_or(flag);
  return {};
}

Status ReadAddedTokens(const JsonObject& config, std::vector<AddedToken>& added) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> decoder, config.Object("added_tokens_decoder"));
  if (!decoder) {
    return {};
  }
  for (const auto& [key, value] : decoder->object()) {
    ASSIGN_OR_RETURN(const JsonObject json,
                     JsonObject::From(value, fmt::format("{}: \"{}\"", decoder->where(), key)));
    AddedToken token;
    for (const char digit : key) {
      if (digit < '0' || digit > '9' || token.id >= Vocabulary::kMaxTokens) {
        return InvalidArgument(fmt::format("{}: keys must be token ids in 0..{}: \"{}\"",
                                           decoder->where(), Vocabulary::kMaxTokens - 1, key),
                               "added_tokens_decoder");
      }
      token.id = 10 * token.id + (digit - '0');
    }
    ASSIGN_OR_RETURN(token.content, json.RequiredString("content"));
    RETURN_IF_ERROR(ReadFlag(json, "special", token.special));
    token.normalized = !token.special;
    RETURN_IF_ERROR(ReadFlag(json, "normalized", token.normalized));
    RETURN_IF_ERROR(ReadFlag(json, "single_word", token.single_word));
    RETURN_IF_ERROR(ReadFlag(json, "lstrip", token.lstrip));
    RETURN_IF_ERROR(ReadFlag(json, "rstrip", token.rstrip));
    added.push_back(std::move(token));
  }
  // Tokens outside the vocabulary get their ids in this order.
  std::ranges::stable_sort(added, {}, &AddedToken::id);
  return {};
}

Result<std::string> ReadTextFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) {
    return NotFound(fmt::format("cannot read {}", path.string()));
  }
  if (const std::optional<size_t> invalid = unicode::FindInvalidUtf8(text)) {
    return InvalidArgument(
        fmt::format("{}: not valid UTF-8: byte offset {}", path.string(), *invalid));
  }
  return text;
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace bouquet::text
