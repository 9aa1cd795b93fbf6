#include "text/tokenizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "text/stage_parser.h"
#include "text/vocabulary_text.h"
#include "text/wordpiece.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;
using simdjson::dom::element;

constexpr uintmax_t kMaxFileBytes = uintmax_t{256} << 20;

/// The kind of a model part without "type", as older files have it: by the fields that only one
/// kind has, in the order in which the reference tries them.
std::string_view InferKind(const JsonObject& model) {
  if (model.Has("merges")) {
    return "BPE";
  }
  if (model.Has("continuing_subword_prefix") && model.Has("max_input_chars_per_word")) {
    return "WordPiece";
  }
  const std::optional<element> vocabulary = model.Element("vocab");
  return vocabulary && vocabulary->is_array() ? "Unigram" : "WordLevel";
}

Result<std::string> ModelKind(const JsonObject& model) {
  ASSIGN_OR_RETURN(const std::optional<std::string> type, model.String("type"));
  return type ? *type : std::string(InferKind(model));
}

Status NotServed(const std::string& where, std::string_view kind) {
  return Unimplemented(fmt::format("{}: text is not served for this kind of tokenizer yet, the "
                                   "model takes token ids: {} (served: WordPiece)",
                                   where, kind),
                       "model.type");
}

Result<WordPieceSpec> ParseWordPiece(const JsonObject& model) {
  constexpr int64_t kMaxCharacters = 1 << 20;
  WordPieceSpec spec;
  ASSIGN_OR_RETURN(spec.unknown_token, model.RequiredString("unk_token"));
  ASSIGN_OR_RETURN(spec.continuing_prefix, model.RequiredString("continuing_subword_prefix"));
  ASSIGN_OR_RETURN(spec.max_characters_per_word,
                   model.RequiredInteger("max_input_chars_per_word", 0, kMaxCharacters));
  ASSIGN_OR_RETURN(const std::optional<JsonObject> vocabulary, model.Object("vocab"));
  if (!vocabulary) {
    return InvalidArgument(fmt::format("{}: \"vocab\" is missing", model.where()), "vocab");
  }
  bool has_unknown = false;
  spec.tokens.reserve(vocabulary->object().size());
  for (const auto& [token, value] : vocabulary->object()) {
    int64_t id = 0;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id >= Vocabulary::kMaxTokens) {
      return InvalidArgument(
          fmt::format("{}: \"vocab\": ids must be integers in 0..{}: token \"{}\"", model.where(),
                      Vocabulary::kMaxTokens - 1, token),
          "vocab");
    }
    has_unknown |= token == spec.unknown_token && !token.empty();
    spec.tokens.emplace_back(token, static_cast<int32_t>(id));
  }
  if (!has_unknown) {
    return InvalidArgument(fmt::format("{}: \"unk_token\" is not in the vocabulary: \"{}\"",
                                       model.where(), spec.unknown_token),
                           "unk_token");
  }
  return spec;
}

Result<std::vector<AddedToken>> ParseAddedTokens(const JsonObject& root) {
  std::vector<AddedToken> tokens;
  const std::optional<element> list = root.Element("added_tokens");
  if (!list) {
    return tokens;
  }
  simdjson::dom::array values;
  if (list->get_array().get(values) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"added_tokens\" must be an array", root.where()),
                           "added_tokens");
  }
  for (const element value : values) {
    ASSIGN_OR_RETURN(const JsonObject json,
                     JsonObject::From(value, fmt::format("{}: \"added_tokens\"[{}]", root.where(),
                                                         tokens.size())));
    AddedToken token;
    ASSIGN_OR_RETURN(const int64_t id, json.RequiredInteger("id", 0, Vocabulary::kMaxTokens - 1));
    token.id = static_cast<int32_t>(id);
    ASSIGN_OR_RETURN(token.content, json.RequiredString("content"));
    ASSIGN_OR_RETURN(token.special, json.RequiredBool("special"));
    ASSIGN_OR_RETURN(token.normalized, json.RequiredBool("normalized"));
    ASSIGN_OR_RETURN(token.single_word, json.RequiredBool("single_word"));
    ASSIGN_OR_RETURN(token.lstrip, json.RequiredBool("lstrip"));
    ASSIGN_OR_RETURN(token.rstrip, json.RequiredBool("rstrip"));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// "do_lower_case" of the sentence-transformers folder. BERT's own lowercasing makes it redundant:
/// the result is the same for every code point.
void LowercaseFirst(std::vector<NormalizerStage>& stages) {
  const bool lowercases = std::ranges::any_of(stages, [](const NormalizerStage& stage) {
    return stage.kind == NormalizerStage::Kind::kLowercase ||
           (stage.kind == NormalizerStage::Kind::kBert && stage.lowercase);
  });
  if (!lowercases) {
    stages.insert(stages.begin(), NormalizerStage{.kind = NormalizerStage::Kind::kLowercase});
  }
}

Result<TokenizerFile> Assemble(const JsonDocument& document, bool lowercase_first) {
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::From(document.root(), document.source()));
  ASSIGN_OR_RETURN(const std::optional<JsonObject> model, root.Object("model"));
  if (!model) {
    return InvalidArgument(fmt::format("{}: \"model\" is missing", root.where()), "model");
  }
  // The kind first: a file of another kind fails for that reason, not for one of its stages.
  ASSIGN_OR_RETURN(const std::string kind, ModelKind(*model));
  if (kind != "WordPiece") {
    return NotServed(root.where(), kind);
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> version, root.String("version"));
  if (version.value_or("1.0") != "1.0") {
    return Unimplemented(
        fmt::format("{}: \"version\" is not served: \"{}\" (served: 1.0)", root.where(), *version),
        "version");
  }
  ASSIGN_OR_RETURN(const WordPieceSpec spec, ParseWordPiece(*model));
  ASSIGN_OR_RETURN(std::vector<NormalizerStage> normalizer, ParseNormalizer(root));
  ASSIGN_OR_RETURN(std::vector<PreTokenizerStage> pre_tokenizer, ParsePreTokenizer(root));
  ASSIGN_OR_RETURN(const std::vector<AddedToken> added, ParseAddedTokens(root));
  TokenizerFile file;
  ASSIGN_OR_RETURN(file.post_processor, ParsePostProcessor(root));
  if (lowercase_first) {
    LowercaseFirst(normalizer);
  }
  ASSIGN_OR_RETURN(file.tokenizer,
                   WordPieceTokenizer::Create(spec, Normalizer(std::move(normalizer)),
                                              PreTokenizer(std::move(pre_tokenizer)), added));
  return file;
}

Status CheckSize(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) {
    return NotFound(fmt::format("cannot read {}", path.string()));
  }
  if (size > kMaxFileBytes) {
    return InvalidArgument(fmt::format("file is too large: {}: {} bytes, limit {}", path.string(),
                                       size, kMaxFileBytes));
  }
  return {};
}

}  // namespace

Result<TokenizerFile> ParseTokenizerJson(std::string_view json, const std::string& source,
                                         bool lowercase_first) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(json, source));
  return Assemble(document, lowercase_first);
}

Result<TokenizerFile> ReadTokenizerFolder(const fs::path& folder, bool lowercase_first) {
  const fs::path json = folder / "tokenizer.json";
  if (fs::exists(json)) {
    RETURN_IF_ERROR(CheckSize(json));
    ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::ParseFile(json));
    return Assemble(document, lowercase_first);
  }
  const fs::path vocabulary = folder / "vocab.txt";
  if (fs::exists(vocabulary)) {
    RETURN_IF_ERROR(CheckSize(vocabulary));
    return ReadVocabularyText(folder, lowercase_first);
  }
  constexpr std::pair<std::string_view, std::string_view> kOtherKinds[] = {
      {"vocab.json", "byte-level BPE"},
      {"sentencepiece.bpe.model", "SentencePiece"},
      {"spiece.model", "SentencePiece"},
      {"tokenizer.model", "SentencePiece"},
  };
  for (const auto& [name, kind] : kOtherKinds) {
    if (fs::exists(folder / name)) {
      return NotServed((folder / name).string(), kind);
    }
  }
  return NotFound(
      fmt::format("no tokenizer in {}: looked for tokenizer.json and vocab.txt", folder.string()));
}

}  // namespace bouquet::text
