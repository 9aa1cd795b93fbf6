#include "rose/backend/cuda/attention/chooser.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int32_t kMaxHeadDim = 256;

struct Rule {
  int32_t head_dim;
  int32_t from_tokens;   // the least num_tokens, and
  int32_t from_longest;  // the least longest_sequence, where the rule holds
  AttentionKernel kernel;
  int32_t tile_rows;  // 0: as OwnTileRows says
};

using enum AttentionKernel;

// Without a window: the first rule that holds, of the kernels that may be used.
constexpr std::array kRules = {
    Rule{128, 512, 256, kFa3, 128}, Rule{128, 2048, 256, kFa2, 128},
    Rule{128, 0, 0, kFa2, 64},      Rule{128, 0, 0, kTensorCore, 0},
    Rule{128, 0, 0, kFa3, 128},     Rule{64, 512, 256, kFa3, 192},
    Rule{64, 2048, 256, kFa2, 128}, Rule{64, 0, 0, kFa2, 64},
    Rule{64, 0, 0, kTensorCore, 0}, Rule{64, 0, 0, kFa3, 192},
    Rule{32, 0, 0, kTensorCore, 0},
};

// With one.
constexpr std::array kWindowRules = {
    Rule{128, 0, 0, kTensorCore, 0}, Rule{128, 2048, 256, kFa2, 128}, Rule{128, 0, 0, kFa2, 64},
    Rule{64, 0, 0, kTensorCore, 0},  Rule{64, 2048, 256, kFa2, 128},  Rule{64, 0, 0, kFa2, 64},
    Rule{32, 0, 0, kTensorCore, 0},
};

AttentionFamily FamilyOf(AttentionKernel kernel) {
  switch (kernel) {
    case kPlain:
    case kTensorCore: return AttentionFamily::kOwn;
    case kFa2: return AttentionFamily::kFa2;
    case kFa3: return AttentionFamily::kFa3;
  }
  return AttentionFamily::kAuto;
}

bool IsAllowed(AttentionKernel kernel, AttentionFamily family, bool fa3_built) {
  return (kernel != kFa3 || fa3_built) &&
         (family == AttentionFamily::kAuto || family == FamilyOf(kernel));
}

template <size_t kCount>
const Rule* FirstRule(const std::array<Rule, kCount>& rules, const AttentionShape& shape,
                      const AttentionSizes& sizes, AttentionFamily family, bool fa3_built) {
  for (const Rule& rule : rules) {
    if (rule.head_dim == shape.head_dim && sizes.num_tokens >= rule.from_tokens &&
        sizes.longest_sequence >= rule.from_longest && IsAllowed(rule.kernel, family, fa3_built)) {
      return &rule;
    }
  }
  return nullptr;
}

std::optional<AttentionChoice> Choose(const AttentionShape& shape, const AttentionSizes& sizes,
                                      AttentionFamily family, bool fa3_built) {
  const bool is_well_formed = shape.num_kv_heads > 0 && shape.num_heads > 0 &&
                              shape.num_heads % shape.num_kv_heads == 0 && shape.head_dim > 0 &&
                              shape.head_dim <= kMaxHeadDim && shape.window >= 0;
  if (!is_well_formed) {
    return std::nullopt;
  }
  const Rule* rule = shape.window > 0 ? FirstRule(kWindowRules, shape, sizes, family, fa3_built)
                                      : FirstRule(kRules, shape, sizes, family, fa3_built);
  if (rule != nullptr) {
    // One long causal sequence: its tiles differ most in work, and a grid of tiles, heaviest first,
    // levels them better than strides do (1 × 4096: 114 against 131 µs).
    const bool persistent =
        rule->kernel == kFa3 && (shape.mask != AttentionMask::kCausal || sizes.num_sequences > 1);
    const int32_t tile_rows =
        rule->tile_rows > 0 ? rule->tile_rows : OwnTileRows(sizes.longest_sequence);
    return AttentionChoice{rule->kernel, tile_rows, persistent};
  }
  if (IsAllowed(kPlain, family, fa3_built)) {
    return AttentionChoice{kPlain, OwnTileRows(sizes.longest_sequence), false};
  }
  return std::nullopt;
}

}  // namespace

Result<AttentionFamily> ParseAttentionFamily(std::string_view name) {
  if (name.empty() || name == "auto") {
    return AttentionFamily::kAuto;
  }
  if (name == "own") {
    return AttentionFamily::kOwn;
  }
  if (name == "fa2") {
    return AttentionFamily::kFa2;
  }
  if (name == "fa3") {
    return AttentionFamily::kFa3;
  }
  return InvalidArgument(fmt::format("attention must be one of auto, own, fa2, fa3: {}", name),
                         "attention");
}

std::string NameOf(const AttentionChoice& choice) {
  switch (choice.kernel) {
    case kPlain: return "own_plain";
    case kTensorCore: return fmt::format("own_{}", choice.tile_rows);
    case kFa2: return fmt::format("fa2_{}", choice.tile_rows);
    case kFa3:
      return fmt::format("fa3_{}{}", choice.tile_rows, choice.persistent ? "" : "_per_tile");
  }
  return "unknown";
}

bool IsServed(const AttentionShape& shape, AttentionFamily family, bool fa3_built) {
  return Choose(shape, AttentionSizes{1, 1, 1}, family, fa3_built).has_value();
}

AttentionChoice ChooseAttention(const AttentionShape& shape, const AttentionSizes& sizes,
                                AttentionFamily family, bool fa3_built) {
  const std::optional<AttentionChoice> choice = Choose(shape, sizes, family, fa3_built);
  CHECK(choice.has_value());
  return *choice;
}

}  // namespace bouquet::rose::cuda
