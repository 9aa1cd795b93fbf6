#include "text/tokenizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "text/model_parser.h"
#include "text/sentencepiece_file.h"
#include "text/stage_parser.h"
#include "text/staged_tokenizer.h"
#include "text/vocabulary_json.h"
#include "text/vocabulary_text.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;
using simdjson::dom::element;

constexpr uintmax_t kMaxFileBytes = uintmax_t{256} << 20;

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
  RETURN_IF_ERROR(CheckModelKind(*model, root.where()));
  ASSIGN_OR_RETURN(const std::optional<std::string> version, root.String("version"));
  if (version.value_or("1.0") != "1.0") {
    return Unimplemented(
        fmt::format("{}: \"version\" is not served: \"{}\" (served: 1.0)", root.where(), *version),
        "version");
  }
  ASSIGN_OR_RETURN(std::vector<NormalizerStage> normalizer, ParseNormalizer(root));
  ASSIGN_OR_RETURN(std::vector<PreTokenizerStage> stages, ParsePreTokenizer(root));
  PreTokenizer pre_tokenizer(std::move(stages));
  ASSIGN_OR_RETURN(ParsedModel parsed, ParseModel(*model, pre_tokenizer.is_byte_level()));
  ASSIGN_OR_RETURN(const std::vector<AddedToken> added, ParseAddedTokens(root));
  TokenizerFile file;
  ASSIGN_OR_RETURN(file.post_processor, ParsePostProcessor(root));
  if (lowercase_first) {
    LowercaseFirst(normalizer);
  }
  ASSIGN_OR_RETURN(file.tokenizer,
                   StagedTokenizer::Create(std::move(parsed.model), parsed.tokens,
                                           Normalizer(std::move(normalizer)),
                                           std::move(pre_tokenizer), added, ParseDecoder(root)));
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
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "config.json"}) {
    if (fs::exists(folder / name)) {
      RETURN_IF_ERROR(CheckSize(folder / name));
    }
  }
  const fs::path vocabulary = folder / "vocab.txt";
  if (fs::exists(vocabulary)) {
    RETURN_IF_ERROR(CheckSize(vocabulary));
    return ReadVocabularyText(folder, lowercase_first);
  }
  for (const char* name : {"sentencepiece.bpe.model", "spiece.model", "tokenizer.model"}) {
    if (fs::exists(folder / name)) {
      return ReadSentencePieceFile(folder / name, lowercase_first);
    }
  }
  if (fs::exists(folder / "vocab.json")) {
    RETURN_IF_ERROR(CheckSize(folder / "vocab.json"));
    RETURN_IF_ERROR(CheckSize(folder / "merges.txt"));
    return ReadVocabularyJson(folder, lowercase_first);
  }
  return NotFound(fmt::format(
      "no tokenizer in {}: looked for tokenizer.json, vocab.txt, a SentencePiece model "
      "(sentencepiece.bpe.model, spiece.model, tokenizer.model) and vocab.json with merges.txt",
      folder.string()));
}

}  // namespace bouquet::text
