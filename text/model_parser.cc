#include "text/model_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "text/bpe.h"
#include "text/unigram.h"
#include "text/vocabulary.h"
#include "text/word_level.h"
#include "text/wordpiece.h"

namespace bouquet::text {
namespace {

using simdjson::dom::element;

/// The kind of a model part without "type", as older files have it: by the fields that only one
/// kind has, in the order in which the reference tries them.
std::string_view InferKind(const JsonObject& model) {
  if (model.Has("merges")) {
    return "BPE";
  }
  if (model.Has("continuing_subword_prefix") && model.Has("max_input_chars_per_word")) {
    return "WordPiece";
  }
  const std::optional<simdjson::dom::element> vocabulary = model.Element("vocab");
  return vocabulary && vocabulary->is_array() ? "Unigram" : "WordLevel";
}

Result<std::string> ModelKind(const JsonObject& model) {
  ASSIGN_OR_RETURN(const std::optional<std::string> type, model.String("type"));
  return type ? *type : std::string(InferKind(model));
}

/// An unknown token of `model`, which must be one of `tokens`.
Result<std::string> ParseUnknownToken(const JsonObject& model, const TokenList& tokens) {
  ASSIGN_OR_RETURN(std::string unknown, model.RequiredString("unk_token"));
  const bool is_token = std::ranges::find(tokens, std::string_view(unknown),
                                          &TokenList::value_type::first) != tokens.end();
  if (unknown.empty() || !is_token) {
    return InvalidArgument(
        fmt::format("{}: \"unk_token\" is not in the vocabulary: \"{}\"", model.where(), unknown),
        "unk_token");
  }
  return unknown;
}

/// "vocab": {"token": id, …}.
Result<TokenList> ParseVocabulary(const JsonObject& model) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> vocabulary, model.Object("vocab"));
  if (!vocabulary) {
    return InvalidArgument(fmt::format("{}: \"vocab\" is missing", model.where()), "vocab");
  }
  return ParseTokenIds(*vocabulary);
}

Result<WordPieceSpec> ParseWordPiece(const JsonObject& model) {
  constexpr int64_t kMaxCharacters = 1 << 20;
  WordPieceSpec spec;
  ASSIGN_OR_RETURN(spec.continuing_prefix, model.RequiredString("continuing_subword_prefix"));
  ASSIGN_OR_RETURN(spec.max_characters_per_word,
                   model.RequiredInteger("max_input_chars_per_word", 0, kMaxCharacters));
  ASSIGN_OR_RETURN(spec.tokens, ParseVocabulary(model));
  ASSIGN_OR_RETURN(spec.unknown_token, ParseUnknownToken(model, spec.tokens));
  return spec;
}

Result<WordLevelSpec> ParseWordLevel(const JsonObject& model) {
  WordLevelSpec spec;
  ASSIGN_OR_RETURN(spec.tokens, ParseVocabulary(model));
  ASSIGN_OR_RETURN(spec.unknown_token, ParseUnknownToken(model, spec.tokens));
  return spec;
}

Status BadMerge(const JsonObject& model, size_t index) {
  return InvalidArgument(fmt::format("{}: \"merges\"[{}] must be two tokens, in one string with a "
                                     "space between them or in an array",
                                     model.where(), index),
                         "merges");
}

/// ["a b", …], or [["a", "b"], …] as newer files have it.
Status ParseMerges(const JsonObject& model, BpeSpec& spec) {
  simdjson::dom::array merges;
  const std::optional<element> list = model.Element("merges");
  if (!list || list->get_array().get(merges) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"merges\" must be an array", model.where()), "merges");
  }
  spec.merges.reserve(merges.size());
  for (const element merge : merges) {
    std::string_view left;
    std::string_view right;
    if (merge.get_string().get(left) == simdjson::SUCCESS) {
      const size_t space = left.find(' ');
      if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos) {
        return BadMerge(model, spec.merges.size());
      }
      right = left.substr(space + 1);
      left = left.substr(0, space);
    } else {
      simdjson::dom::array pair;
      if (merge.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
          pair.at(0).get_string().get(left) != simdjson::SUCCESS ||
          pair.at(1).get_string().get(right) != simdjson::SUCCESS) {
        return BadMerge(model, spec.merges.size());
      }
    }
    spec.merges.emplace_back(left, right);
  }
  return {};
}

Result<BpeSpec> ParseBpe(const JsonObject& model, bool byte_level) {
  BpeSpec spec;
  spec.byte_level = byte_level;
  ASSIGN_OR_RETURN(const std::optional<double> dropout, model.Number("dropout"));
  if (dropout.value_or(0) != 0) {
    return Unimplemented(fmt::format("{}: \"dropout\" is not served, which makes ids random: {}",
                                     model.where(), *dropout),
                         "dropout");
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSIGN_OR_RETURN(const std::optional<std::string> affix, model.String(key));
    if (!affix.value_or("").empty()) {
      return Unimplemented(fmt::format("{}: \"{}\" of a BPE model is not served: \"{}\"",
                                       model.where(), key, *affix),
                           std::string(key));
    }
  }
  const auto flag = [&model](std::string_view key, bool& value) -> Status {
    ASSIGN_OR_RETURN(const std::optional<bool> stated, model.Bool(key));
    value = stated.value_or(false);
    return {};
  };
  RETURN_IF_ERROR(flag("byte_fallback", spec.byte_fallback));
  RETURN_IF_ERROR(flag("fuse_unk", spec.fuse_unknown));
  RETURN_IF_ERROR(flag("ignore_merges", spec.ignore_merges));
  if (byte_level && spec.byte_fallback) {
    return Unimplemented(
        fmt::format("{}: \"byte_fallback\" is not served for bytes", model.where()),
        "byte_fallback");
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> unknown, model.String("unk_token"));
  spec.unknown_token = unknown.value_or("");
  ASSIGN_OR_RETURN(spec.tokens, ParseVocabulary(model));
  RETURN_IF_ERROR(ParseMerges(model, spec));
  return spec;
}

/// A number as the reference reads it from a file: its digits as an integer, divided by a power of
/// ten, which rounds twice and so is off by one in the last place for some. Scores need it: sums of
/// many tie, and then the last place decides. The digits are taken to be the shortest that tell the
/// number from others, as all who write such files have them.
double AsTheReferenceReads(double value) {
  char digits[32];
  const std::to_chars_result written = std::to_chars(
      std::begin(digits), std::end(digits), std::abs(value), std::chars_format::scientific);
  uint64_t integer = 0;
  int exponent = 0;
  bool in_fraction = false;
  const char* c = digits;
  for (; c != written.ptr && *c != 'e'; ++c) {
    if (*c == '.') {
      in_fraction = true;
      continue;
    }
    integer = 10 * integer + static_cast<uint64_t>(*c - '0');
    exponent -= in_fraction ? 1 : 0;
  }
  int stated = 0;
  std::from_chars(c + (c[1] == '+' ? 2 : 1), written.ptr, stated);
  exponent += stated;
  constexpr int kLargestExact = 22;  // 10^22 is the largest power of ten without rounding
  if (exponent >= 0 || exponent < -kLargestExact) {
    return value;
  }
  double power = 1;
  for (int i = 0; i < -exponent; ++i) {
    power *= 10;
  }
  return std::copysign(static_cast<double>(integer) / power, value);
}

/// "vocab": [["token", score], …]; ids are positions.
Status ParseScoredVocabulary(const JsonObject& model, UnigramSpec& spec) {
  simdjson::dom::array entries;
  const std::optional<element> list = model.Element("vocab");
  if (!list || list->get_array().get(entries) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"vocab\" must be an array", model.where()), "vocab");
  }
  for (const element entry : entries) {
    const auto id = static_cast<int32_t>(spec.tokens.size());
    std::string_view token;
    double score = 0;
    simdjson::dom::array pair;
    bool is_pair = entry.get_array().get(pair) == simdjson::SUCCESS;
    if (is_pair) {
      auto part = pair.begin();
      const auto end = pair.end();
      is_pair = part != end && (*part).get_string().get(token) == simdjson::SUCCESS &&
                ++part != end && (*part).get_double().get(score) == simdjson::SUCCESS &&
                !(++part != end);
    }
    if (!is_pair || id >= Vocabulary::kMaxTokens) {
      return InvalidArgument(fmt::format("{}: \"vocab\"[{}] must be a pair of token and score, one "
                                         "of at most {}",
                                         model.where(), id, Vocabulary::kMaxTokens),
                             "vocab");
    }
    spec.tokens.emplace_back(token, id);
    spec.scores.push_back(AsTheReferenceReads(score));
  }
  return {};
}

Result<UnigramSpec> ParseUnigram(const JsonObject& model) {
  UnigramSpec spec;
  RETURN_IF_ERROR(ParseScoredVocabulary(model, spec));
  ASSIGN_OR_RETURN(const std::optional<bool> byte_fallback, model.Bool("byte_fallback"));
  spec.byte_fallback = byte_fallback.value_or(false);
  ASSIGN_OR_RETURN(const std::optional<int64_t> unknown_id,
                   model.Integer("unk_id", 0, Vocabulary::kMaxTokens - 1));
  if (!unknown_id) {
    return Unimplemented(fmt::format("{}: a Unigram model without \"unk_id\" is not served, which "
                                     "has no ids for some texts",
                                     model.where()),
                         "unk_id");
  }
  spec.unknown_id = static_cast<int32_t>(*unknown_id);
  return spec;
}

/// Names the file and the part in what a model says of its own contents.
template <class Model>
Result<std::unique_ptr<TokenModel>> In(const JsonObject& json,
                                       Result<std::unique_ptr<Model>> made) {
  if (!made.ok()) {
    const Status why = made.status();
    return Status(why.code(), fmt::format("{}: {}", json.where(), why.message()), why.field());
  }
  return std::unique_ptr<TokenModel>(std::move(made).value());
}

}  // namespace

Result<TokenList> ParseTokenIds(const JsonObject& vocabulary) {
  TokenList tokens;
  tokens.reserve(vocabulary.object().size());
  for (const auto& [token, value] : vocabulary.object()) {
    int64_t id = 0;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id >= Vocabulary::kMaxTokens) {
      return InvalidArgument(fmt::format("{}: ids must be integers in 0..{}: token \"{}\"",
                                         vocabulary.where(), Vocabulary::kMaxTokens - 1, token),
                             "vocab");
    }
    tokens.emplace_back(token, static_cast<int32_t>(id));
  }
  return tokens;
}

Status CheckModelKind(const JsonObject& model, const std::string& where) {
  ASSIGN_OR_RETURN(const std::string kind, ModelKind(model));
  const auto served = {"WordPiece", "BPE", "Unigram", "WordLevel"};
  return std::ranges::find(served, std::string_view(kind)) != served.end()
             ? Status()
             : ModelNotServed(where, kind);
}

Result<ParsedModel> ParseModel(const JsonObject& model, bool byte_level) {
  ASSIGN_OR_RETURN(const std::string kind, ModelKind(model));
  ParsedModel parsed;
  if (kind == "BPE") {
    ASSIGN_OR_RETURN(BpeSpec spec, ParseBpe(model, byte_level));
    ASSIGN_OR_RETURN(parsed.model, In(model, Bpe::Create(spec)));
    parsed.tokens = std::move(spec.tokens);
    return parsed;
  }
  if (byte_level) {
    return Unimplemented(
        fmt::format("{}: a ByteLevel pre-tokenizer is served with BPE only, not with {}",
                    model.where(), kind),
        "pre_tokenizer");
  }
  if (kind == "Unigram") {
    ASSIGN_OR_RETURN(UnigramSpec spec, ParseUnigram(model));
    ASSIGN_OR_RETURN(parsed.model, In(model, Unigram::Create(spec)));
    parsed.tokens = std::move(spec.tokens);
    return parsed;
  }
  if (kind == "WordLevel") {
    ASSIGN_OR_RETURN(WordLevelSpec spec, ParseWordLevel(model));
    parsed.model = std::make_unique<WordLevel>(spec);
    parsed.tokens = std::move(spec.tokens);
    return parsed;
  }
  ASSIGN_OR_RETURN(WordPieceSpec spec, ParseWordPiece(model));
  parsed.model = std::make_unique<WordPiece>(spec);
  parsed.tokens = std::move(spec.tokens);
  return parsed;
}

Status ModelNotServed(const std::string& where, std::string_view kind) {
  return Unimplemented(
      fmt::format("{}: text is not served for this kind of tokenizer yet, the "
                  "model takes token ids: {} (served: tokenizer.json with WordPiece, "
                  "BPE, Unigram or WordLevel, vocab.txt with WordPiece, SentencePiece model files)",
                  where, kind),
      "model.type");
}

}  // namespace bouquet::text
