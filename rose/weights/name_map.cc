#include "rose/weights/name_map.h"

#include <array>
#include <span>

namespace bouquet::rose {
namespace {

using model::Architecture;

constexpr std::array<std::string_view, 8> kPrefixes = {
    "", "bert.", "model.", "roberta.", "new.", "distilbert.", "transformer.", "mpnet."};

struct HarmlessName {
  std::string_view name;  // whole, or its end when `is_suffix`, or its begin when it ends in a dot
  bool is_suffix;
  std::string_view reason;
};

constexpr HarmlessName kPositionIds = {"embeddings.position_ids", false,
                                       "0, 1, 2, … as older releases saved it"};
constexpr HarmlessName kTokenTypeIds = {"embeddings.token_type_ids", false,
                                        "zeros, as older releases saved it"};

constexpr std::array<HarmlessName, 4> kHarmlessInBert = {{
    kPositionIds,
    kTokenTypeIds,
    {"pooler.", false, "the classifier of next-sentence training; rows come from the pipeline"},
    {"cls.", false, "the output layers of masked-word training"},
}};

constexpr std::array<HarmlessName, 4> kHarmlessInRoberta = {{
    kPositionIds,
    kTokenTypeIds,
    {"pooler.", false, "kept from BERT and never trained; rows come from the pipeline"},
    {"lm_head.", false, "the output layers of masked-word training"},
}};

constexpr std::array<HarmlessName, 3> kHarmlessInMpnet = {{
    kPositionIds,
    {"pooler.", false, "never trained; rows come from the pipeline"},
    {"lm_head.", false, "the output layers of masked-word training"},
}};

constexpr std::array<HarmlessName, 4> kHarmlessInDistilBert = {{
    kPositionIds,
    {"vocab_transform.", false, "the output layers of masked-word training"},
    {"vocab_layer_norm.", false, "the output layers of masked-word training"},
    {"vocab_projector.", false, "the output layers of masked-word training"},
}};

constexpr std::array<HarmlessName, 2> kHarmlessInQwen3 = {{
    {"lm_head.weight", false, "scores of the next word; a copy of the word embedding when tied"},
    {"rotary_emb.inv_freq", true, "follows from rope_theta; older releases saved it"},
}};

bool Matches(const HarmlessName& harmless, std::string_view name) {
  if (harmless.is_suffix) {
    return name.ends_with(harmless.name);
  }
  return harmless.name.ends_with('.') ? name.starts_with(harmless.name) : name == harmless.name;
}

std::span<const HarmlessName> HarmlessNames(Architecture architecture) {
  switch (architecture) {
    case Architecture::kBert: return kHarmlessInBert;
    case Architecture::kRoberta: return kHarmlessInRoberta;
    case Architecture::kMpnet: return kHarmlessInMpnet;
    case Architecture::kDistilBert: return kHarmlessInDistilBert;
    case Architecture::kQwen3: return kHarmlessInQwen3;
  }
  return {};
}

}  // namespace

std::string_view AnchorName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kBert:
    case Architecture::kRoberta:
    case Architecture::kMpnet:
    case Architecture::kDistilBert: return "embeddings.word_embeddings.weight";
    case Architecture::kQwen3: return "embed_tokens.weight";
  }
  return {};
}

std::optional<std::string> FindNamePrefix(Architecture architecture,
                                          const std::function<bool(std::string_view)>& has) {
  for (const std::string_view prefix : kPrefixes) {
    if (has(std::string(prefix) + std::string(AnchorName(architecture)))) {
      return std::string(prefix);
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> HarmlessReason(Architecture architecture, std::string_view name) {
  for (const HarmlessName& harmless : HarmlessNames(architecture)) {
    if (Matches(harmless, name)) {
      return harmless.reason;
    }
  }
  return std::nullopt;
}

}  // namespace bouquet::rose
