#include "text/sentencepiece_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "proto/sentencepiece/model.pb.h"
#include "text/bpe.h"
#include "text/charsmap.h"
#include "text/staged_tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/unicode/utf8.h"
#include "text/unigram.h"
#include "text/vocabulary.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;
using sentencepiece::Model;
using Kind = SentencePieceUse::Kind;

constexpr std::string_view kSpace = "\u2581";
// Bounds the work of finding merges; trained files have far less.
constexpr size_t kMaxBpePieceBytes = 512;
constexpr size_t kMaxMerges = size_t{1} << 23;

/// The parts of a tokenizer while they are put together. Strings point into the file.
struct Parts {
  TokenList tokens;
  std::vector<double> scores;
  int32_t unknown_id = 0;
  std::vector<AddedToken> added;
};

void Add(std::string_view token, double score, Parts& parts) {
  parts.tokens.emplace_back(token, static_cast<int32_t>(parts.tokens.size()));
  parts.scores.push_back(score);
}

void AddSpecial(std::string_view token, bool special, Parts& parts) {
  AddedToken added;
  added.content = token;
  added.id = AddedToken::kNoId;
  added.special = special;
  parts.added.push_back(std::move(added));
}

Status CheckPieces(const Model& model) {
  if (model.pieces().empty() || model.pieces_size() > Vocabulary::kMaxTokens / 2) {
    return InvalidArgument(
        fmt::format("must have 1..{} pieces: {}", Vocabulary::kMaxTokens / 2, model.pieces_size()),
        "pieces");
  }
  for (int i = 0; i < model.pieces_size(); ++i) {
    const Model::Piece& piece = model.pieces(i);
    if (piece.piece().empty() || unicode::FindInvalidUtf8(piece.piece()).has_value()) {
      return InvalidArgument(fmt::format("pieces must be UTF-8 and not empty: {}", i), "pieces");
    }
    if (!std::isfinite(piece.score())) {
      return InvalidArgument(fmt::format("scores must be finite: piece {}", i), "pieces");
    }
  }
  const int32_t unknown = model.trainer_spec().unk_id();
  if (unknown < 0 || unknown >= model.pieces_size()) {
    return InvalidArgument(
        fmt::format("unk_id must be in 0..{}: {}", model.pieces_size() - 1, unknown), "unk_id");
  }
  return {};
}

Parts PlainParts(const Model& model) {
  Parts parts;
  parts.unknown_id = model.trainer_spec().unk_id();
  for (const Model::Piece& piece : model.pieces()) {
    Add(piece.piece(), piece.score(), parts);
    if (piece.type() == Model::Piece::CONTROL || piece.type() == Model::Piece::USER_DEFINED) {
      AddSpecial(piece.piece(), piece.type() == Model::Piece::CONTROL, parts);
    }
  }
  // So that it is taken for itself in texts, as other special tokens are.
  AddSpecial(parts.tokens[static_cast<size_t>(parts.unknown_id)].first, true, parts);
  return parts;
}

/// `extra` are the names of the added ids, of which the last comes first.
Parts T5Parts(const Model& model, const std::vector<std::string>& extra) {
  Parts parts = PlainParts(model);
  for (const std::string& name : extra) {
    Add(name, 0, parts);
    AddSpecial(name, true, parts);
  }
  return parts;
}

/// fairseq's order: four tokens of its own in place of the file's first three.
Parts XlmRobertaParts(const Model& model) {
  Parts parts;
  for (const std::string_view token : {"<s>", "<pad>", "</s>", "<unk>"}) {
    Add(token, 0, parts);
    AddSpecial(token, true, parts);
  }
  parts.unknown_id = 3;
  for (int i = 3; i < model.pieces_size(); ++i) {
    Add(model.pieces(i).piece(), model.pieces(i).score(), parts);
  }
  Add("<mask>", 0, parts);
  AddSpecial("<mask>", true, parts);
  parts.added.back().lstrip = true;
  return parts;
}

/// All ways to put a piece together from two others, the best-scored pieces first, of equals the
/// first; the ways to one piece by the length of the left part.
Status FindMerges(const Model& model, BpeSpec& spec) {
  std::vector<DoubleArrayTrie::Entry> normal;
  std::vector<int> order;
  for (int i = 0; i < model.pieces_size(); ++i) {
    const Model::Piece& piece = model.pieces(i);
    if (piece.type() != Model::Piece::NORMAL) {
      continue;
    }
    if (piece.piece().size() > kMaxBpePieceBytes) {
      return InvalidArgument(fmt::format("pieces of BPE must have at most {} bytes: piece {}, {}",
                                         kMaxBpePieceBytes, i, piece.piece().size()),
                             "pieces");
    }
    normal.emplace_back(piece.piece(), i);
    order.push_back(i);
  }
  const DoubleArrayTrie trie = DoubleArrayTrie::Build(normal);
  std::ranges::stable_sort(
      order, [&](int a, int b) { return model.pieces(a).score() > model.pieces(b).score(); });
  for (const int i : order) {
    const std::string_view piece = model.pieces(i).piece();
    if (trie.Value(trie.Walk(DoubleArrayTrie::kRoot, piece)) != i) {
      continue;  // listed again later
    }
    DoubleArrayTrie::Node node = DoubleArrayTrie::kRoot;
    for (size_t left = 1; left < piece.size(); ++left) {
      node = trie.Step(node, static_cast<unsigned char>(piece[left - 1]));
      if (trie.Value(node) == DoubleArrayTrie::kNoValue) {
        continue;
      }
      const DoubleArrayTrie::Node right = trie.Walk(DoubleArrayTrie::kRoot, piece.substr(left));
      if (right != DoubleArrayTrie::kDead && trie.Value(right) != DoubleArrayTrie::kNoValue) {
        spec.merges.emplace_back(piece.substr(0, left), piece.substr(left));
      }
    }
    if (spec.merges.size() > kMaxMerges) {
      return InvalidArgument(
          fmt::format("pieces can be put together in more than {} ways", kMaxMerges), "pieces");
    }
  }
  return {};
}

Result<std::unique_ptr<TokenModel>> BuildModel(const Model& model, const Parts& parts) {
  const bool byte_fallback = model.trainer_spec().byte_fallback();
  if (model.trainer_spec().model_type() == Model::Training::UNIGRAM) {
    ASSIGN_OR_RETURN(std::unique_ptr<Unigram> unigram,
                     Unigram::Create({.tokens = parts.tokens,
                                      .scores = parts.scores,
                                      .unknown_id = parts.unknown_id,
                                      .byte_fallback = byte_fallback}));
    return std::unique_ptr<TokenModel>(std::move(unigram));
  }
  if (model.trainer_spec().model_type() != Model::Training::BPE) {
    return Unimplemented("SentencePiece models of words or characters are not served",
                         "model_type");
  }
  BpeSpec spec;
  spec.tokens = parts.tokens;
  spec.unknown_token = parts.tokens[static_cast<size_t>(parts.unknown_id)].first;
  spec.byte_fallback = byte_fallback;
  spec.fuse_unknown = true;
  RETURN_IF_ERROR(FindMerges(model, spec));
  ASSIGN_OR_RETURN(std::unique_ptr<Bpe> bpe, Bpe::Create(spec));
  return std::unique_ptr<TokenModel>(std::move(bpe));
}

Result<std::vector<NormalizerStage>> BuildNormalizer(const Model& model,
                                                     const SentencePieceUse& use) {
  using StageKind = NormalizerStage::Kind;
  const Model::Normalization& rules = model.normalizer_spec();
  std::vector<NormalizerStage> stages;
  if (!rules.precompiled_charsmap().empty()) {
    ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::Parse(rules.precompiled_charsmap()));
    NormalizerStage stage{.kind = StageKind::kPrecompiled};
    stage.charsmap = std::make_shared<const Charsmap>(std::move(charsmap));
    stages.push_back(std::move(stage));
  }
  if (use.kind != Kind::kPlain) {
    return stages;  // whitespace is the pre-tokenizer's
  }
  if (!rules.escape_whitespaces() || model.trainer_spec().treat_whitespace_as_suffix()) {
    return Unimplemented("SentencePiece models that do not begin words with U+2581 are not served",
                         "escape_whitespaces");
  }
  if (rules.remove_extra_whitespaces()) {
    NormalizerStage strip{.kind = StageKind::kStrip};
    strip.strip_left = strip.strip_right = strip.spaces_only = true;
    stages.push_back(std::move(strip));
    NormalizerStage collapse{.kind = StageKind::kReplaceSpaces};
    collapse.min_spaces = 2;
    collapse.content = " ";
    stages.push_back(std::move(collapse));
  }
  if (rules.add_dummy_prefix() && use.prefixes_every_section) {
    NormalizerStage prepend{.kind = StageKind::kPrepend};
    prepend.content = kSpace;
    stages.push_back(std::move(prepend));
  }
  NormalizerStage escape{.kind = StageKind::kReplace};
  escape.pattern = " ";
  escape.content = kSpace;
  stages.push_back(std::move(escape));
  return stages;
}

std::vector<PreTokenizerStage> BuildPreTokenizer(const Model& model, const SentencePieceUse& use) {
  std::vector<PreTokenizerStage> stages;
  PreTokenizerStage metaspace;
  metaspace.kind = PreTokenizerStage::Kind::kMetaspace;
  metaspace.behavior = SplitBehavior::kMergedWithNext;
  metaspace.pattern = kSpace;
  if (use.kind != Kind::kPlain) {
    stages.push_back({.kind = PreTokenizerStage::Kind::kWhitespaceSplit});
    stages.push_back(std::move(metaspace));
  } else if (model.normalizer_spec().add_dummy_prefix() && !use.prefixes_every_section) {
    metaspace.prepend = PreTokenizerStage::Prepend::kFirst;
    metaspace.splits = false;
    stages.push_back(std::move(metaspace));
  }
  return stages;
}

/// As the conversions to tokenizer.json state it: of a plain model the dummy prefix goes again.
Decoder BuildDecoder(const Model& model, const SentencePieceUse& use) {
  using DecoderKind = DecoderStage::Kind;
  if (use.kind != Kind::kPlain) {
    return Decoder({{.kind = DecoderKind::kMetaspace,
                     .pattern = std::string(kSpace),
                     .drops_first_mark = true}});
  }
  std::vector<DecoderStage> stages = {
      {.kind = DecoderKind::kReplace, .pattern = std::string(kSpace), .content = " "},
      {.kind = DecoderKind::kByteFallback},
      {.kind = DecoderKind::kFuse},
  };
  if (model.normalizer_spec().add_dummy_prefix()) {
    stages.push_back({.kind = DecoderKind::kStrip, .pattern = " ", .strip_start = 1});
  }
  return Decoder(std::move(stages));
}

SequenceTemplate::Part SpecialPart(int32_t id) {
  return {.kind = SequenceTemplate::Part::Kind::kSpecial, .ids = {id}};
}

/// [bos] A [eos], and [bos] B [eos] behind it.
Result<PostProcessor> Frame(const Model& model, bool bos, bool eos) {
  using PartKind = SequenceTemplate::Part::Kind;
  const Model::Training& training = model.trainer_spec();
  for (const auto& [wanted, id, name] : {std::tuple(bos, training.bos_id(), "bos_id"),
                                         std::tuple(eos, training.eos_id(), "eos_id")}) {
    if (wanted && (id < 0 || id >= model.pieces_size())) {
      return InvalidArgument(
          fmt::format("{} must be in 0..{}: {}", name, model.pieces_size() - 1, id), name);
    }
  }
  PostProcessor processor = PlainPostProcessor();
  SequenceTemplate pair;
  for (const PartKind text : {PartKind::kFirst, PartKind::kSecond}) {
    if (bos) {
      pair.parts.push_back(SpecialPart(training.bos_id()));
    }
    pair.parts.push_back({.kind = text});
    if (eos) {
      pair.parts.push_back(SpecialPart(training.eos_id()));
    }
    if (text == PartKind::kFirst) {
      processor.single = pair;
    }
  }
  processor.pair = std::move(pair);
  return processor;
}

Result<TokenizerFile> Build(const Model& model, const SentencePieceUse& use, bool lowercase_first) {
  RETURN_IF_ERROR(CheckPieces(model));
  std::vector<std::string> extra;
  TokenizerFile file;
  Parts parts;
  switch (use.kind) {
    case Kind::kPlain: {
      parts = PlainParts(model);
      ASSIGN_OR_RETURN(file.post_processor, Frame(model, use.adds_bos, use.adds_eos));
      break;
    }
    case Kind::kT5: {
      for (int32_t i = use.num_extra_ids; i-- > 0;) {
        extra.push_back(fmt::format("<extra_id_{}>", i));
      }
      parts = T5Parts(model, extra);
      ASSIGN_OR_RETURN(file.post_processor, Frame(model, false, true));
      break;
    }
    case Kind::kXlmRoberta:
      parts = XlmRobertaParts(model);
      file.post_processor = RobertaPostProcessor(0, 2);
      break;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TokenModel> token_model, BuildModel(model, parts));
  ASSIGN_OR_RETURN(std::vector<NormalizerStage> normalizer, BuildNormalizer(model, use));
  if (lowercase_first) {
    normalizer.insert(normalizer.begin(), {.kind = NormalizerStage::Kind::kLowercase});
  }
  ASSIGN_OR_RETURN(file.tokenizer,
                   StagedTokenizer::Create(std::move(token_model), parts.tokens,
                                           Normalizer(std::move(normalizer)),
                                           PreTokenizer(BuildPreTokenizer(model, use)), parts.added,
                                           BuildDecoder(model, use)));
  return file;
}

Status ReadUse(const JsonObject& config, SentencePieceUse& use) {
  ASSIGN_OR_RETURN(const std::string name, ReadTokenizerClass(config));
  if (name == "T5Tokenizer") {
    use.kind = Kind::kT5;
    constexpr int64_t kMaxExtraIds = 10'000;
    ASSIGN_OR_RETURN(const std::optional<int64_t> extra,
                     config.Integer("extra_ids", 0, kMaxExtraIds));
    use.num_extra_ids = static_cast<int32_t>(extra.value_or(use.num_extra_ids));
    return {};
  }
  if (name == "XLMRobertaTokenizer") {
    use.kind = Kind::kXlmRoberta;
    return {};
  }
  if (!name.empty() && name != "LlamaTokenizer" && name != "PreTrainedTokenizer") {
    return Unimplemented(
        fmt::format("{}: \"tokenizer_class\" is not served without tokenizer.json: {} (served: "
                    "LlamaTokenizer, T5Tokenizer, XLMRobertaTokenizer)",
                    config.where(), name),
        "tokenizer_class");
  }
  use.adds_bos = name == "LlamaTokenizer";
  RETURN_IF_ERROR(ReadFlag(config, "add_bos_token", use.adds_bos));
  RETURN_IF_ERROR(ReadFlag(config, "add_eos_token", use.adds_eos));
  return ReadFlag(config, "legacy", use.prefixes_every_section);
}

}  // namespace

Result<TokenizerFile> ParseSentencePiece(std::string_view bytes, const std::string& source,
                                         const SentencePieceUse& use, bool lowercase_first) {
  Model model;
  if (bytes.size() > kMaxSentencePieceBytes ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument(fmt::format("not a SentencePiece model file, or cut off: {}, {} bytes",
                                       source, bytes.size()));
  }
  Result<TokenizerFile> file = Build(model, use, lowercase_first);
  if (!file.ok()) {
    const Status status = file.status();
    return Status(status.code(), fmt::format("{}: {}", source, status.message()), status.field());
  }
  return file;
}

Result<TokenizerFile> ReadSentencePieceFile(const fs::path& path, bool lowercase_first) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) {  // also of a folder with that name
    return NotFound(fmt::format("cannot read {}", path.string()));
  }
  if (size > kMaxSentencePieceBytes) {
    return InvalidArgument(fmt::format("file is too large: {}: {} bytes, limit {}", path.string(),
                                       size, kMaxSentencePieceBytes));
  }
  SentencePieceUse use;
  RETURN_IF_ERROR(ReadIfThere(path.parent_path() / "tokenizer_config.json",
                              [&use](const JsonObject& config) { return ReadUse(config, use); }));
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) {
    return NotFound(fmt::format("cannot read {}", path.string()));
  }
  return ParseSentencePiece(bytes, path.string(), use, lowercase_first);
}

}  // namespace bouquet::text
