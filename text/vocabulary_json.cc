#include "text/vocabulary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "text/bpe.h"
#include "text/model_parser.h"
#include "text/staged_tokenizer.h"
#include "text/tokenizer_config.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;

using IdByToken = std::unordered_map<std::string_view, int32_t>;

enum class Kind : uint8_t { kRoberta, kGpt2 };

struct Settings {
  Kind kind = Kind::kRoberta;
  std::string beginning;
  std::string end;
  std::string separator;
  std::string classification;
  std::string unknown;
  std::string padding;
  std::string mask;
  std::vector<AddedToken> added;
  bool add_prefix_space = false;
  bool trim_offsets = true;
};

Result<Kind> FindKind(const fs::path& folder, const IdByToken& vocabulary) {
  std::string class_name;
  std::string model_type;
  RETURN_IF_ERROR(
      ReadIfThere(folder / "tokenizer_config.json", [&](const JsonObject& config) -> Status {
        ASSIGN_OR_RETURN(class_name, ReadTokenizerClass(config));
        return {};
      }));
  RETURN_IF_ERROR(ReadIfThere(folder / "config.json", [&](const JsonObject& config) {
    return ReadToken(config, "model_type", model_type);
  }));
  if (!class_name.empty() && class_name != "RobertaTokenizer" && class_name != "GPT2Tokenizer") {
    return Unimplemented(
        fmt::format("{}: \"tokenizer_class\" is not served without tokenizer.json: {}",
                    (folder / "tokenizer_config.json").string(), class_name),
        "tokenizer_class");
  }
  if (class_name == "RobertaTokenizer" || (class_name.empty() && model_type == "roberta")) {
    return Kind::kRoberta;
  }
  if (class_name == "GPT2Tokenizer" || (class_name.empty() && model_type == "gpt2")) {
    return Kind::kGpt2;
  }
  const auto has = [&](std::string_view token) { return vocabulary.contains(token); };
  if (has("<s>") && has("</s>") && has("<mask>")) {
    return Kind::kRoberta;
  }
  if (has("<|endoftext|>")) {
    return Kind::kGpt2;
  }
  return Unimplemented(fmt::format(
      "{}: of byte-level BPE without tokenizer.json only RoBERTa's and GPT-2's is served, and "
      "neither \"tokenizer_class\", \"model_type\" nor the vocabulary say that it is theirs",
      folder.string()));
}

Status ReadNamedTokens(const JsonObject& config, Settings& settings) {
  const std::pair<std::string_view, std::string*> names[] = {
      {"bos_token", &settings.beginning}, {"eos_token", &settings.end},
      {"unk_token", &settings.unknown},   {"sep_token", &settings.separator},
      {"pad_token", &settings.padding},   {"cls_token", &settings.classification},
      {"mask_token", &settings.mask},
  };
  for (const auto& [key, token] : names) {
    RETURN_IF_ERROR(ReadToken(config, key, *token));
  }
  return {};
}

Result<Settings> ReadSettings(const fs::path& folder, const IdByToken& vocabulary) {
  Settings settings;
  ASSIGN_OR_RETURN(settings.kind, FindKind(folder, vocabulary));
  if (settings.kind == Kind::kRoberta) {
    settings.beginning = settings.classification = "<s>";
    settings.end = settings.separator = "</s>";
    settings.unknown = "<unk>";
    settings.padding = "<pad>";
    settings.mask = "<mask>";
  } else {
    settings.beginning = settings.end = settings.unknown = "<|endoftext|>";
  }
  RETURN_IF_ERROR(ReadIfThere(folder / "special_tokens_map.json", [&](const JsonObject& map) {
    return ReadNamedTokens(map, settings);
  }));
  const fs::path path = folder / "tokenizer_config.json";
  bool add_bos_token = false;
  const auto read = [&](const JsonObject& config) -> Status {
    RETURN_IF_ERROR(ReadNamedTokens(config, settings));
    RETURN_IF_ERROR(ReadAddedTokens(config, settings.added));
    RETURN_IF_ERROR(ReadFlag(config, "add_prefix_space", settings.add_prefix_space));
    RETURN_IF_ERROR(ReadFlag(config, "trim_offsets", settings.trim_offsets));
    return ReadFlag(config, "add_bos_token", add_bos_token);
  };
  RETURN_IF_ERROR(ReadIfThere(path, read));
  if (add_bos_token) {
    return Unimplemented(fmt::format("{}: \"add_bos_token\" is not served: true", path.string()),
                         "add_bos_token");
  }
  return settings;
}

/// The special tokens that the settings name, where "added_tokens_decoder" does not list them.
void AddNamedTokens(Settings& settings) {
  for (const std::string* name :
       {&settings.beginning, &settings.end, &settings.unknown, &settings.separator,
        &settings.padding, &settings.classification, &settings.mask}) {
    if (name->empty()) {
      continue;
    }
    const auto listed = std::ranges::find(settings.added, *name, &AddedToken::content);
    if (listed != settings.added.end()) {
      listed->special = true;
    } else {
      settings.added.push_back({.content = *name,
                                .id = AddedToken::kNoId,
                                .special = true,
                                .lstrip = name == &settings.mask});
    }
  }
}

/// "a b" a line, by rank; a first line "#version: …" and empty lines do not count.
Status ReadMerges(std::string_view text, const fs::path& path, const IdByToken& vocabulary,
                  BpeSpec& spec) {
  std::string both;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) {
      continue;
    }
    const size_t space = std::min(line.find(' '), line.size());
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(std::min(space + 1, line.size()));
    if (left.empty() || right.empty() || right.find(' ') != std::string_view::npos) {
      return InvalidArgument(
          fmt::format("{}: line {} must be two tokens with a space between them: \"{}\"",
                      path.string(), number, line),
          "merges");
    }
    both.assign(left).append(right);
    for (const std::string_view token : {left, right, std::string_view(both)}) {
      if (!vocabulary.contains(token)) {
        return InvalidArgument(
            fmt::format("{}: line {}: not in the vocabulary: \"{}\"", path.string(), number, token),
            "merges");
      }
    }
    spec.merges.emplace_back(left, right);
  }
  return {};
}

Result<PostProcessor> MakePostProcessor(const Settings& settings, const IdByToken& vocabulary,
                                        const fs::path& folder) {
  if (settings.kind == Kind::kGpt2) {
    return PlainPostProcessor();
  }
  const auto first = vocabulary.find(settings.classification);
  const auto last = vocabulary.find(settings.separator);
  if (first == vocabulary.end() || last == vocabulary.end()) {
    return InvalidArgument(fmt::format(
        "{}: special token is not in the vocabulary: \"{}\"", (folder / "vocab.json").string(),
        first == vocabulary.end() ? settings.classification : settings.separator));
  }
  PostProcessor processor = RobertaPostProcessor(first->second, last->second);
  if (settings.trim_offsets) {
    processor.trimmings.push_back({.has_prefix_space = settings.add_prefix_space});
  }
  return processor;
}

}  // namespace

Result<TokenizerFile> ReadVocabularyJson(const fs::path& folder, bool lowercase_first) {
  const fs::path vocabulary_path = folder / "vocab.json";
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::ParseFile(vocabulary_path));
  ASSIGN_OR_RETURN(const JsonObject root,
                   JsonObject::From(document.root(), vocabulary_path.string()));
  BpeSpec spec;
  spec.byte_level = true;
  ASSIGN_OR_RETURN(spec.tokens, ParseTokenIds(root));
  const IdByToken vocabulary(spec.tokens.begin(), spec.tokens.end());
  ASSIGN_OR_RETURN(Settings settings, ReadSettings(folder, vocabulary));
  ASSIGN_OR_RETURN(const std::string merges, ReadTextFile(folder / "merges.txt"));
  RETURN_IF_ERROR(ReadMerges(merges, folder / "merges.txt", vocabulary, spec));
  AddNamedTokens(settings);

  TokenizerFile file;
  ASSIGN_OR_RETURN(file.post_processor, MakePostProcessor(settings, vocabulary, folder));
  std::vector<NormalizerStage> normalizer;
  if (lowercase_first) {
    normalizer.push_back({.kind = NormalizerStage::Kind::kLowercase});
  }
  PreTokenizerStage byte_level = {.kind = PreTokenizerStage::Kind::kByteLevel};
  byte_level.expression = SplitPattern::kGpt2;
  byte_level.add_prefix_space = settings.add_prefix_space;
  ASSIGN_OR_RETURN(std::unique_ptr<Bpe> model, Bpe::Create(spec));
  ASSIGN_OR_RETURN(
      file.tokenizer,
      StagedTokenizer::Create(std::move(model), spec.tokens, Normalizer(std::move(normalizer)),
                              PreTokenizer({byte_level}), settings.added,
                              Decoder({{.kind = DecoderStage::Kind::kByteLevel}})));
  return file;
}

}  // namespace bouquet::text
