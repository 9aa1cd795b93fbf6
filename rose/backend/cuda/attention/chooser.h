#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

/// Whose kernels may be used: the values of `--attention`.
enum class AttentionFamily : uint8_t { kAuto, kOwn, kFa2, kFa3 };

/// `auto` (or ""), `own`, `fa2`, `fa3`. Error: kInvalidArgument, listing these.
Result<AttentionFamily> ParseAttentionFamily(std::string_view name);

enum class AttentionKernel : uint8_t { kPlain, kTensorCore, kFa2, kFa3 };

/// Query rows of a tile of the own kernels, for steps whose longest sequence is this long.
constexpr int32_t OwnTileRows(int32_t longest_sequence) {
  return longest_sequence <= 16 ? 16 : longest_sequence <= 32 ? 32 : 64;
}

struct AttentionChoice {
  AttentionKernel kernel = AttentionKernel::kPlain;
  int32_t tile_rows = 0;
  bool persistent = false;  // FA3 only: one CTA per SM walks all tiles
  bool operator==(const AttentionChoice&) const = default;
};

/// "own_plain", "own_64", "fa2_128", "fa3_192", "fa3_128_per_tile", …
std::string NameOf(const AttentionChoice& choice);

/// Whether any kernel of `family` serves `shape`; `fa3_built` says whether this build has FA3.
bool IsServed(const AttentionShape& shape, AttentionFamily family, bool fa3_built);

/// The fastest kernel for a step, by the table in chooser.cc. Pure: the same arguments give the
/// same answer. CHECKs that the shape is served.
AttentionChoice ChooseAttention(const AttentionShape& shape, const AttentionSizes& sizes,
                                AttentionFamily family, bool fa3_built);

}  // namespace bouquet::rose::cuda
