#include "rose/backend/cuda/attention/chooser.h"

#include <array>
#include <optional>
#include <span>

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

// The first rule that holds, of the kernels that may be used, decides; so rules further down also
// serve builds without FA3 and forced families. Beside each the cell that set it: sequences ×
// length and µs a layer inside a graph on an H200 (ragged_attention_bench; 16 heads, and 8 kv heads
// for head size 128). Sequences up to 64 tokens are our own kernel's: fewer rows a tile, more CTAs
// an SM.

constexpr std::array kBidirectionalRules = {
    // 8 × 128: fa3 6.8, fa2 7.6; 1 × 1024: 17.8, 29.1; 25 × 512: 116, 162. Not 1 × 512: 11.1, 10.8.
    Rule{128, 1024, 65, kFa3, 128},
    // 32 × 64: 8.9, fa2_64 13.6, own 12.8. But 64 × 32: own 10.0, fa2 13.4.
    Rule{128, 2048, 33, kFa2, 128},
    // 4 × 256: 10.6, fa2_64 11.1; 1 × 1024: 29.1, 31.0.
    Rule{128, 1024, 65, kFa2, 128},
    // 1 × 128: 4.8, own 6.4; 1 × 512: 10.8, own 18.6.
    Rule{128, 0, 65, kFa2, 64},
    // 1 × 16: 2.8, fa2 4.7; 1 × 64: 4.4, 4.9; 256 × 16: 18.7, 47.6.
    Rule{128, 0, 0, kTensorCore, 0},
    Rule{128, 0, 0, kFa2, 64},
    Rule{128, 0, 0, kFa3, 128},

    // 5 × 512: fa3 20.9, fa2 22.5; 25 × 512: 94, 103. Not 1 × 2048: 61.6, 55.6; 64 ×
    // 128: 33.5, 29.2.
    Rule{64, 2560, 256, kFa3, 192},
    // 16 × 128: 7.6, fa2_64 9.2; 1 × 2048: 55.6, 62.3.
    Rule{64, 2048, 65, kFa2, 128},
    // 1 × 128: 3.7, own 4.1; 1 × 512: 7.1, own 10.4; 1 × 1024: 18.0, fa3 18.3.
    Rule{64, 0, 65, kFa2, 64},
    // 1 × 16: 2.4, fa2 3.6; 64 × 64: 12.2, 14.9; 256 × 16: 8.3, 49.4.
    Rule{64, 0, 0, kTensorCore, 0},
    Rule{64, 0, 0, kFa2, 64},
    Rule{64, 0, 0, kFa3, 192},

    Rule{32, 0, 0, kTensorCore, 0},
};

constexpr std::array kCausalRules = {
    // 8 × 128: fa3 6.7, fa2 7.5; 1 × 4096: 122, 281; 25 × 512: 94, 110; 3 to 700 tokens: 190, 183.
    Rule{128, 1024, 65, kFa3, 128},
    // 32 × 64: 9.2, fa2_64 13.6, own 13.1.
    Rule{128, 2048, 33, kFa2, 128},
    Rule{128, 1024, 65, kFa2, 128},
    // 1 × 128: 5.2, own 6.7; 1 × 512: 10.8, fa3 11.4.
    Rule{128, 0, 65, kFa2, 64},
    // 1 × 16: 2.9, fa2 4.8; 256 × 16: 18.9, 48.0.
    Rule{128, 0, 0, kTensorCore, 0},
    Rule{128, 0, 0, kFa2, 64},
    Rule{128, 0, 0, kFa3, 128},

    // 1 × 2048: 33.2, fa2 50.9; 1 × 4096: 100, 156. Not 25 × 512: 86.7, 79.2.
    Rule{64, 2048, 2048, kFa3, 192},
    // 16 × 128: 8.1, fa2_64 9.5; 25 × 512: 79.2, 87.6, own 83.6.
    Rule{64, 2048, 65, kFa2, 128},
    // 1 × 128: 3.8, own 4.2; 1 × 1024: 18.2, own 21.6.
    Rule{64, 0, 65, kFa2, 64},
    // 1 × 16: 2.4, fa2 3.6; 64 × 64: 12.6, 17.0.
    Rule{64, 0, 0, kTensorCore, 0},
    Rule{64, 0, 0, kFa2, 64},
    Rule{64, 0, 0, kFa3, 192},

    Rule{32, 0, 0, kTensorCore, 0},
};

// Windows of 256 for head size 128 and of 64 for 64, with and without a causal mask.
constexpr std::array kWindowRules = {
    // 64 × 64: 21.5, own 26.7; 1 × 4096: 69, fa2_64 87, own 104.
    Rule{128, 2048, 33, kFa2, 128},
    // 1 × 512: 12.4, own 18.6.
    Rule{128, 0, 65, kFa2, 64},
    // 1 × 64: 4.4, fa2 5.5.
    Rule{128, 0, 0, kTensorCore, 0},
    Rule{128, 0, 0, kFa2, 64},

    // 1 × 512: 5.4, fa2 5.5 (causal 4.6, 4.1); 1 × 4096: 16.5, 18.5; 25 × 512: 47, 53.
    Rule{64, 0, 0, kTensorCore, 0},
    Rule{64, 2048, 65, kFa2, 128},
    Rule{64, 0, 0, kFa2, 64},

    Rule{32, 0, 0, kTensorCore, 0},
};

std::span<const Rule> RulesFor(const AttentionShape& shape) {
  if (shape.window > 0) {
    return kWindowRules;
  }
  return shape.mask == AttentionMask::kCausal ? std::span<const Rule>(kCausalRules)
                                              : std::span<const Rule>(kBidirectionalRules);
}

/// One CTA per SM walks the tiles (25 × 512: 116 µs against 135), except where few causal tiles of
/// very different work are levelled better by starting them heaviest first (1 × 4096: 122 against
/// 143; 5 × 512: 24 against 29; but 16 × 128: 12.3 against 10.5).
bool IsPersistent(const AttentionShape& shape, const AttentionSizes& sizes) {
  constexpr int32_t kFewTokens = 4096;
  constexpr int32_t kOneTile = 128;
  return shape.mask != AttentionMask::kCausal ||
         (sizes.num_sequences > 1 &&
          (sizes.num_tokens > kFewTokens || sizes.longest_sequence <= kOneTile));
}

AttentionFamily FamilyOf(AttentionKernel kernel) {
  switch (kernel) {
    case kPlain:
    case kTensorCore: return AttentionFamily::kOwn;
    case kFa2: return AttentionFamily::kFa2;
    case kFa3: return AttentionFamily::kFa3;
  }
  return AttentionFamily::kAuto;
}

bool IsAllowed(AttentionKernel kernel, const AttentionShape& shape, AttentionFamily family,
               bool fa3_built) {
  return (kernel != kFa3 || fa3_built) &&
         (!shape.relative_bias || FamilyOf(kernel) == AttentionFamily::kOwn) &&
         (family == AttentionFamily::kAuto || family == FamilyOf(kernel));
}

std::optional<AttentionChoice> Choose(const AttentionShape& shape, const AttentionSizes& sizes,
                                      AttentionFamily family, bool fa3_built) {
  const bool is_well_formed = shape.num_kv_heads > 0 && shape.num_heads > 0 &&
                              shape.num_heads % shape.num_kv_heads == 0 && shape.head_dim > 0 &&
                              shape.head_dim <= kMaxHeadDim && shape.window >= 0;
  if (!is_well_formed) {
    return std::nullopt;
  }
  for (const Rule& rule : RulesFor(shape)) {
    if (rule.head_dim == shape.head_dim && sizes.num_tokens >= rule.from_tokens &&
        sizes.longest_sequence >= rule.from_longest &&
        IsAllowed(rule.kernel, shape, family, fa3_built)) {
      return AttentionChoice{
          rule.kernel, rule.tile_rows > 0 ? rule.tile_rows : OwnTileRows(sizes.longest_sequence),
          rule.kernel == kFa3 && IsPersistent(shape, sizes)};
    }
  }
  if (IsAllowed(kPlain, shape, family, fa3_built)) {
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
