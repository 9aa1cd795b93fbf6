#include "text/vocabulary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "text/staged_tokenizer.h"
#include "text/tokenizer_config.h"
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

Status ReadSettings(const JsonObject& config, BertSettings& settings) {
  ASSIGN_OR_RETURN(const std::string class_name, ReadTokenizerClass(config));
  constexpr std::string_view kBertClasses[] = {"", "BertTokenizer", "DistilBertTokenizer",
                                               "ElectraTokenizer"};
  if (std::ranges::find(kBertClasses, class_name) == std::end(kBertClasses)) {
    return Unimplemented(
        fmt::format("{}: \"tokenizer_class\" is not served without tokenizer.json: {}",
                    config.where(), class_name),
        "tokenizer_class");
  }
  bool basic = true;
  RETURN_IF_ERROR(ReadFlag(config, "do_basic_tokenize", basic));
  if (!basic) {
    return Unimplemented(
        fmt::format("{}: \"do_basic_tokenize\" is not served: false", config.where()),
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
  return ReadAddedTokens(config, settings.added);
}

/// Ids by line; of a token on two lines the last counts.
Result<std::vector<std::pair<std::string_view, int32_t>>> SplitLines(std::string_view text,
                                                                     const fs::path& path) {
  std::vector<std::pair<std::string_view, int32_t>> tokens;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
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
  BertSettings settings;
  RETURN_IF_ERROR(ReadIfThere(folder / "tokenizer_config.json", [&](const JsonObject& config) {
    return ReadSettings(config, settings);
  }));
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
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
