#include "text/vocabulary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "text/staged_tokenizer.h"
#include "text/unicode/utf8.h"
#include "text/wordpiece.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;

/// What tokenizer_config.json says; the defaults are BertTokenizer's.
struct BertSettings {
  NormalizerStage normalizer = {.kind = NormalizerStage::Kind::kBert,
                                .clean_text = true,
                                .handle_chinese_chars = true,
                                .strip_accents = true,
                                .lowercase = true};
  std::string unknown = "[UNK]";
  std::string separator = "[SEP]";
  std::string padding = "[PAD]";
  std::string classification = "[CLS]";
  std::string mask = "[MASK]";
  std::vector<AddedToken> added;
};

/// A token is a string, or an object with "content" in files written by older versions.
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

/// "added_tokens_decoder": {"100": {"content": "[UNK]", …}, …}.
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

Result<BertSettings> ReadSettings(const fs::path& path) {
  BertSettings settings;
  if (!fs::exists(path)) {
    return settings;
  }
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::ParseFile(path));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), path.string()));
  ASSIGN_OR_RETURN(const std::optional<std::string> class_name, config.String("tokenizer_class"));
  constexpr std::string_view kBertClasses[] = {
      "BertTokenizer",    "BertTokenizerFast",    "DistilBertTokenizer",
      "ElectraTokenizer", "ElectraTokenizerFast", "DistilBertTokenizerFast",
  };
  if (class_name && std::ranges::find(kBertClasses, *class_name) == std::end(kBertClasses)) {
    return Unimplemented(
        fmt::format("{}: \"tokenizer_class\" is not served without tokenizer.json: {}",
                    path.string(), *class_name),
        "tokenizer_class");
  }
  bool basic = true;
  RETURN_IF_ERROR(ReadFlag(config, "do_basic_tokenize", basic));
  if (!basic) {
    return Unimplemented(
        fmt::format("{}: \"do_basic_tokenize\" is not served: false", path.string()),
        "do_basic_tokenize");
  }
  NormalizerStage& normalizer = settings.normalizer;
  RETURN_IF_ERROR(ReadFlag(config, "do_lower_case", normalizer.lowercase));
  RETURN_IF_ERROR(ReadFlag(config, "tokenize_chinese_chars", normalizer.handle_chinese_chars));
  normalizer.strip_accents = normalizer.lowercase;
  RETURN_IF_ERROR(ReadFlag(config, "strip_accents", normalizer.strip_accents));
  RETURN_IF_ERROR(ReadToken(config, "unk_token", settings.unknown));
  RETURN_IF_ERROR(ReadToken(config, "sep_token", settings.separator));
  RETURN_IF_ERROR(ReadToken(config, "pad_token", settings.padding));
  RETURN_IF_ERROR(ReadToken(config, "cls_token", settings.classification));
  RETURN_IF_ERROR(ReadToken(config, "mask_token", settings.mask));
  RETURN_IF_ERROR(ReadAddedTokens(config, settings.added));
  return settings;
}

Result<std::string> ReadFile(const fs::path& path) {
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

/// Ids by line; of a token on two lines the last counts.
Result<std::vector<std::pair<std::string_view, int32_t>>> SplitLines(std::string_view text,
                                                                     const fs::path& path) {
  std::vector<std::pair<std::string_view, int32_t>> tokens;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (tokens.size() >= Vocabulary::kMaxTokens) {
      return InvalidArgument(
          fmt::format("{}: too many lines, limit {}", path.string(), Vocabulary::kMaxTokens));
    }
    tokens.emplace_back(line, static_cast<int32_t>(tokens.size()));
  }
  return tokens;
}

/// The special tokens that the settings name, where "added_tokens_decoder" does not list them.
void AddNamedTokens(BertSettings& settings) {
  for (const std::string* name : {&settings.padding, &settings.unknown, &settings.classification,
                                  &settings.separator, &settings.mask}) {
    const auto named = std::ranges::find(settings.added, *name, &AddedToken::content);
    if (named != settings.added.end()) {
      named->special = true;
    } else {
      settings.added.push_back({.content = *name, .id = AddedToken::kNoId, .special = true});
    }
  }
}

}  // namespace

Result<TokenizerFile> ReadVocabularyText(const fs::path& folder, bool lowercase_first) {
  const fs::path path = folder / "vocab.txt";
  ASSIGN_OR_RETURN(BertSettings settings, ReadSettings(folder / "tokenizer_config.json"));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  WordPieceSpec spec;
  spec.unknown_token = settings.unknown;
  spec.continuing_prefix = "##";
  ASSIGN_OR_RETURN(spec.tokens, SplitLines(text, path));
  const auto find = [&](const std::string& token) -> Result<int32_t> {
    int32_t found = -1;
    for (const auto& [piece, id] : spec.tokens) {
      found = piece == token && !token.empty() ? id : found;
    }
    if (found < 0) {
      return InvalidArgument(
          fmt::format("{}: special token is not in the vocabulary: \"{}\"", path.string(), token));
    }
    return found;
  };
  RETURN_IF_ERROR(find(settings.unknown).status());
  ASSIGN_OR_RETURN(const int32_t cls, find(settings.classification));
  ASSIGN_OR_RETURN(const int32_t sep, find(settings.separator));
  AddNamedTokens(settings);

  std::vector<NormalizerStage> normalizer = {settings.normalizer};
  if (lowercase_first && !settings.normalizer.lowercase) {
    normalizer.insert(normalizer.begin(), {.kind = NormalizerStage::Kind::kLowercase});
  }
  TokenizerFile file;
  file.post_processor = BertPostProcessor(cls, sep);
  ASSIGN_OR_RETURN(
      file.tokenizer,
      StagedTokenizer::Create(
          std::make_unique<WordPiece>(spec), spec.tokens, Normalizer(std::move(normalizer)),
          PreTokenizer({{.kind = PreTokenizerStage::Kind::kBert}}), settings.added,
          Decoder({{.kind = DecoderStage::Kind::kWordPiece, .pattern = "##", .clean_up = true}})));
  return file;
}

}  // namespace bouquet::text
