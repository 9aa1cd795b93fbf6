#include "text/stage_parser.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "text/stage_json.h"
#include "text/vocabulary.h"

namespace bouquet::text {
namespace {

using simdjson::dom::element;

Result<NormalizerStage> ParseReplace(const JsonObject& json) {
  using Kind = NormalizerStage::Kind;
  NormalizerStage stage;
  ASSIGN_OR_RETURN(StagePattern pattern, ParsePattern(json, "normalizer Replace"));
  ASSIGN_OR_RETURN(stage.content, ParseContent(json));
  if (!pattern.is_regex) {
    stage.kind = Kind::kReplace;
    stage.pattern = std::move(pattern.text);
  } else if (std::string_view(pattern.text) == " {2,}") {  // of conversions of SentencePiece files
    stage.kind = Kind::kReplaceSpaces;
    stage.min_spaces = 2;
  } else {
    stage.kind = Kind::kReplaceExpression;
    ASSIGN_OR_RETURN(stage.regex, CompilePattern(json, pattern));
  }
  return stage;
}

Result<NormalizerStage> ParseNormalizerStage(const std::string& type, const JsonObject& json) {
  using Kind = NormalizerStage::Kind;
  constexpr std::pair<std::string_view, Kind> kBare[] = {
      {"Lowercase", Kind::kLowercase},
      {"StripAccents", Kind::kStripAccents},
      {"NFC", Kind::kNfc},
      {"NFD", Kind::kNfd},
      {"NFKC", Kind::kNfkc},
      {"NFKD", Kind::kNfkd},
      {"Nmt", Kind::kNmt},
      {"ByteLevel", Kind::kByteLevel},
  };
  NormalizerStage stage;
  for (const auto& [name, kind] : kBare) {
    if (type == name) {
      stage.kind = kind;
      return stage;
    }
  }
  if (type == "BertNormalizer") {
    stage.kind = Kind::kBert;
    ASSIGN_OR_RETURN(stage.clean_text, json.RequiredBool("clean_text"));
    ASSIGN_OR_RETURN(stage.handle_chinese_chars, json.RequiredBool("handle_chinese_chars"));
    ASSIGN_OR_RETURN(stage.lowercase, json.RequiredBool("lowercase"));
    ASSIGN_OR_RETURN(const std::optional<bool> strip_accents, json.Bool("strip_accents"));
    stage.strip_accents = strip_accents.value_or(stage.lowercase);
  } else if (type == "Replace") {
    return ParseReplace(json);
  } else if (type == "Strip") {
    stage.kind = Kind::kStrip;
    ASSIGN_OR_RETURN(stage.strip_left, json.RequiredBool("strip_left"));
    ASSIGN_OR_RETURN(stage.strip_right, json.RequiredBool("strip_right"));
  } else if (type == "Prepend") {
    stage.kind = Kind::kPrepend;
    ASSIGN_OR_RETURN(stage.content, json.RequiredString("prepend"));
    if (stage.content.empty()) {
      return NotServed(json, "normalizer", "Prepend with an empty \"prepend\"");
    }
  } else if (type == "Precompiled") {
    stage.kind = Kind::kPrecompiled;
    ASSIGN_OR_RETURN(const std::string base64, json.RequiredString("precompiled_charsmap"));
    const std::optional<std::string> blob = DecodeBase64(base64);
    if (!blob) {
      return InvalidArgument(
          fmt::format("{}: \"precompiled_charsmap\" is not base64", json.where()),
          "precompiled_charsmap");
    }
    ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::Parse(*blob));
    stage.charsmap = std::make_shared<const Charsmap>(std::move(charsmap));
  } else {
    return NotServed(json, "normalizer", type);
  }
  return stage;
}

Result<SplitBehavior> ParseBehavior(const JsonObject& json, std::string_view otherwise) {
  constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"Contiguous", SplitBehavior::kContiguous},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
  };
  ASSIGN_OR_RETURN(const std::optional<std::string> stated, json.String("behavior"));
  const std::string name = stated.value_or(std::string(otherwise));
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) {
      return behavior;
    }
  }
  return InvalidArgument(
      fmt::format("{}: \"behavior\" must be Removed, Isolated, Contiguous, MergedWithPrevious or "
                  "MergedWithNext, not \"{}\"",
                  json.where(), name),
      "behavior");
}

Result<PreTokenizerStage> ParseSplit(const JsonObject& json) {
  using Kind = PreTokenizerStage::Kind;
  PreTokenizerStage stage;
  ASSIGN_OR_RETURN(StagePattern pattern, ParsePattern(json, "pre-tokenizer Split"));
  ASSIGN_OR_RETURN(stage.behavior, ParseBehavior(json, ""));
  ASSIGN_OR_RETURN(stage.invert, json.RequiredBool("invert"));
  if (!pattern.is_regex) {
    stage.kind = Kind::kPattern;
    stage.pattern = std::move(pattern.text);
    return stage;
  }
  // A known expression matches everything, so that these behaviours give its matches.
  const bool gives_matches = stage.behavior == SplitBehavior::kIsolated ||
                             (stage.behavior == SplitBehavior::kRemoved && stage.invert);
  stage.expression = gives_matches ? FindSplitPattern(pattern.text) : std::nullopt;
  stage.kind = stage.expression ? Kind::kKnownExpression : Kind::kExpression;
  if (!stage.expression) {
    ASSIGN_OR_RETURN(stage.regex, CompilePattern(json, pattern));
  }
  return stage;
}

Result<PreTokenizerStage> ParseFixedLength(const JsonObject& json) {
  constexpr int64_t kMaxLength = 1 << 20;
  PreTokenizerStage stage;
  stage.kind = PreTokenizerStage::Kind::kFixedLength;
  ASSIGN_OR_RETURN(const std::optional<int64_t> length, json.Integer("length", 1, kMaxLength));
  stage.length = static_cast<size_t>(length.value_or(5));
  return stage;
}

Result<PreTokenizerStage> ParseByteLevel(const JsonObject& json) {
  PreTokenizerStage stage;
  stage.kind = PreTokenizerStage::Kind::kByteLevel;
  ASSIGN_OR_RETURN(stage.add_prefix_space, json.RequiredBool("add_prefix_space"));
  ASSIGN_OR_RETURN(const std::optional<bool> use_regex, json.Bool("use_regex"));
  if (use_regex.value_or(true)) {
    stage.expression = SplitPattern::kGpt2;
  }
  return stage;
}

/// Files before tokenizers 0.15 have "add_prefix_space", and "str_rep", which says nothing.
Result<PreTokenizerStage> ParseMetaspace(const JsonObject& json) {
  using Prepend = PreTokenizerStage::Prepend;
  PreTokenizerStage stage;
  stage.kind = PreTokenizerStage::Kind::kMetaspace;
  stage.behavior = SplitBehavior::kMergedWithNext;
  ASSIGN_OR_RETURN(stage.pattern, RequiredCharacter(json, "replacement"));
  ASSIGN_OR_RETURN(const std::optional<std::string> stated, json.String("prepend_scheme"));
  const std::string scheme = stated.value_or("always");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return InvalidArgument(
        fmt::format("{}: \"prepend_scheme\" must be always, first or never, not \"{}\"",
                    json.where(), scheme),
        "prepend_scheme");
  }
  stage.prepend = scheme == "always"  ? Prepend::kAlways
                  : scheme == "first" ? Prepend::kFirst
                                      : Prepend::kNever;
  ASSIGN_OR_RETURN(const std::optional<bool> add_prefix_space, json.Bool("add_prefix_space"));
  if (!add_prefix_space.value_or(true) && stage.prepend != Prepend::kNever) {
    return InvalidArgument(
        fmt::format("{}: \"add_prefix_space\" is false, but \"prepend_scheme\" is not never: {}",
                    json.where(), scheme),
        "add_prefix_space");
  }
  ASSIGN_OR_RETURN(const std::optional<bool> split, json.Bool("split"));
  stage.splits = split.value_or(true);
  return stage;
}

Result<PreTokenizerStage> ParsePreTokenizerStage(const std::string& type, const JsonObject& json) {
  using Kind = PreTokenizerStage::Kind;
  PreTokenizerStage stage;
  if (type == "BertPreTokenizer") {
    stage.kind = Kind::kBert;
  } else if (type == "Whitespace") {
    stage.kind = Kind::kWhitespace;
  } else if (type == "WhitespaceSplit") {
    stage.kind = Kind::kWhitespaceSplit;
  } else if (type == "Punctuation") {
    stage.kind = Kind::kPunctuation;
    ASSIGN_OR_RETURN(stage.behavior, ParseBehavior(json, "Isolated"));
  } else if (type == "Digits") {
    stage.kind = Kind::kDigits;
    ASSIGN_OR_RETURN(const bool individual, json.RequiredBool("individual_digits"));
    stage.behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  } else if (type == "Split") {
    return ParseSplit(json);
  } else if (type == "FixedLength") {
    return ParseFixedLength(json);
  } else if (type == "ByteLevel") {
    return ParseByteLevel(json);
  } else if (type == "Metaspace") {
    return ParseMetaspace(json);
  } else if (type == "CharDelimiterSplit") {
    stage.kind = Kind::kPattern;
    stage.behavior = SplitBehavior::kRemoved;
    ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("delimiter"));
    if (stage.pattern.empty()) {
      return InvalidArgument(fmt::format("{}: \"delimiter\" must not be empty", json.where()),
                             "delimiter");
    }
  } else {
    return NotServed(json, "pre-tokenizer", type);
  }
  return stage;
}

// ["[SEP]", 102] of BertProcessing and RobertaProcessing.
Result<int32_t> ParseTokenPair(const JsonObject& json, std::string_view key) {
  const std::optional<element> pair = json.Element(key);
  int64_t id = 0;
  if (!pair || pair->at(1).get_int64().get(id) != simdjson::SUCCESS || id < 0 ||
      id >= Vocabulary::kMaxTokens) {
    return InvalidArgument(
        fmt::format("{}: \"{}\" must be a pair of token and id", json.where(), key),
        std::string(key));
  }
  return static_cast<int32_t>(id);
}

/// The ids that a template's special token stands for.
Result<std::vector<int32_t>> SpecialTokenIds(const JsonObject& json, const std::string& name) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> tokens, json.Object("special_tokens"));
  simdjson::dom::array values;
  if (!tokens ||
      tokens->object().at_key(name)["ids"].get_array().get(values) != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: \"special_tokens\" has no ids for \"{}\"", json.where(), name),
        "special_tokens");
  }
  constexpr size_t kMaxIds = 16;
  std::vector<int32_t> ids;
  for (const element value : values) {
    int64_t id = 0;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id >= Vocabulary::kMaxTokens ||
        ids.size() == kMaxIds) {
      return InvalidArgument(fmt::format("{}: \"special_tokens\": \"{}\" must have at most {} ids "
                                         "in 0..{}",
                                         json.where(), name, kMaxIds, Vocabulary::kMaxTokens - 1),
                             "special_tokens");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Result<SequenceTemplate::Part> ParseTemplatePart(const JsonObject& json, const JsonObject& part) {
  using Kind = SequenceTemplate::Part::Kind;
  SequenceTemplate::Part parsed;
  ASSIGN_OR_RETURN(const std::optional<JsonObject> special, part.Object("SpecialToken"));
  ASSIGN_OR_RETURN(const std::optional<JsonObject> sequence, part.Object("Sequence"));
  if (special.has_value() == sequence.has_value()) {
    return InvalidArgument(
        fmt::format("{}: must have one of \"SpecialToken\" and \"Sequence\"", part.where()));
  }
  const JsonObject& content = special ? *special : *sequence;
  ASSIGN_OR_RETURN(const std::string name, content.RequiredString("id"));
  ASSIGN_OR_RETURN(const int64_t type_id, content.RequiredInteger("type_id", 0, 255));
  parsed.type_id = static_cast<uint8_t>(type_id);
  if (special) {
    ASSIGN_OR_RETURN(parsed.ids, SpecialTokenIds(json, name));
    return parsed;
  }
  if (name != "A" && name != "B") {
    return InvalidArgument(
        fmt::format("{}: \"id\" must be \"A\" or \"B\", not \"{}\"", content.where(), name), "id");
  }
  parsed.kind = name == "A" ? Kind::kFirst : Kind::kSecond;
  return parsed;
}

Result<SequenceTemplate> ParseTemplate(const JsonObject& json, std::string_view key) {
  using Kind = SequenceTemplate::Part::Kind;
  constexpr size_t kMaxParts = 64;
  simdjson::dom::array parts;
  const std::optional<element> list = json.Element(key);
  if (!list || list->get_array().get(parts) != simdjson::SUCCESS || parts.size() > kMaxParts) {
    return InvalidArgument(fmt::format("{}: \"{}\" must be an array of at most {} parts",
                                       json.where(), key, kMaxParts),
                           std::string(key));
  }
  SequenceTemplate result;
  for (const element value : parts) {
    ASSIGN_OR_RETURN(const JsonObject part,
                     JsonObject::From(value, fmt::format("{}: \"{}\"", json.where(), key)));
    ASSIGN_OR_RETURN(SequenceTemplate::Part parsed, ParseTemplatePart(json, part));
    if (parsed.kind == Kind::kFirst) {
      result.bare_first_type = parsed.type_id;
    } else if (parsed.kind == Kind::kSecond) {
      result.bare_second_type = parsed.type_id;
    }
    result.parts.push_back(std::move(parsed));
  }
  return result;
}

size_t CountParts(const SequenceTemplate& sequence, SequenceTemplate::Part::Kind kind) {
  size_t count = 0;
  for (const SequenceTemplate::Part& part : sequence.parts) {
    count += part.kind == kind;
  }
  return count;
}

Result<PostProcessor> ParseTemplateProcessing(const JsonObject& json) {
  using Kind = SequenceTemplate::Part::Kind;
  PostProcessor processor;
  ASSIGN_OR_RETURN(processor.single, ParseTemplate(json, "single"));
  if (CountParts(processor.single, Kind::kFirst) != 1 ||
      CountParts(processor.single, Kind::kSecond) != 0) {
    return InvalidArgument(
        fmt::format("{}: \"single\" must have the sequence A once and no B", json.where()),
        "single");
  }
  ASSIGN_OR_RETURN(SequenceTemplate pair, ParseTemplate(json, "pair"));
  if (CountParts(pair, Kind::kFirst) == 1 && CountParts(pair, Kind::kSecond) == 1) {
    processor.pair = std::move(pair);
  }
  return processor;
}

Status ParseTrimming(const JsonObject& json, bool behind_special_tokens,
                     std::vector<SpanTrimming>& trimmings) {
  SpanTrimming trimming = {.behind_special_tokens = behind_special_tokens};
  ASSIGN_OR_RETURN(const bool trims, json.RequiredBool("trim_offsets"));
  ASSIGN_OR_RETURN(trimming.has_prefix_space, json.RequiredBool("add_prefix_space"));
  if (trims) {
    trimmings.push_back(trimming);
  }
  return {};
}

}  // namespace

Result<std::vector<NormalizerStage>> ParseNormalizer(const JsonObject& root) {
  std::vector<NormalizerStage> stages;
  RETURN_IF_ERROR(ForEachStage(root, "normalizer", "normalizers",
                               [&](const std::string& type, const JsonObject& json) -> Status {
                                 ASSIGN_OR_RETURN(NormalizerStage stage,
                                                  ParseNormalizerStage(type, json));
                                 stages.push_back(std::move(stage));
                                 return {};
                               }));
  return stages;
}

Result<std::vector<PreTokenizerStage>> ParsePreTokenizer(const JsonObject& root) {
  std::vector<PreTokenizerStage> stages;
  RETURN_IF_ERROR(ForEachStage(
      root, "pre_tokenizer", "pretokenizers",
      [&](const std::string& type, const JsonObject& json) -> Status {
        if (!stages.empty() && stages.back().kind == PreTokenizerStage::Kind::kByteLevel) {
          return NotServed(json, "a pre-tokenizer behind ByteLevel", type);
        }
        ASSIGN_OR_RETURN(PreTokenizerStage stage, ParsePreTokenizerStage(type, json));
        stages.push_back(std::move(stage));
        return {};
      }));
  return stages;
}

Result<PostProcessor> ParsePostProcessor(const JsonObject& root) {
  PostProcessor processor = PlainPostProcessor();
  std::vector<SpanTrimming> trimmings;
  bool frames = false;  // a stage that adds tokens was seen
  bool behind_special_tokens = false;
  RETURN_IF_ERROR(ForEachStage(root, "post_processor", "processors",
                               [&](const std::string& type, const JsonObject& json) -> Status {
                                 if (type == "ByteLevel") {
                                   return ParseTrimming(json, behind_special_tokens, trimmings);
                                 }
                                 if (frames) {
                                   return NotServed(
                                       json, "a second post-processor that adds tokens", type);
                                 }
                                 frames = true;
                                 if (type == "TemplateProcessing") {
                                   ASSIGN_OR_RETURN(processor, ParseTemplateProcessing(json));
                                   return {};
                                 }
                                 if (type != "BertProcessing" && type != "RobertaProcessing") {
                                   return NotServed(json, "post-processor", type);
                                 }
                                 ASSIGN_OR_RETURN(const int32_t cls, ParseTokenPair(json, "cls"));
                                 ASSIGN_OR_RETURN(const int32_t sep, ParseTokenPair(json, "sep"));
                                 behind_special_tokens = true;  // a template keeps its parts apart
                                 if (type == "BertProcessing") {
                                   processor = BertPostProcessor(cls, sep);
                                   return {};
                                 }
                                 processor = RobertaPostProcessor(cls, sep);
                                 return ParseTrimming(json, false, trimmings);
                               }));
  processor.trimmings = std::move(trimmings);
  return processor;
}

}  // namespace bouquet::text
