#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace bouquet::rose {

/// Steps with more tokens are never captured: the host has launched all of one long before the
/// device has computed it.
inline constexpr int32_t kMostGraphTokens = 8192;

/// The sizes of a step. Padded, they are the key of a captured step: everything else is read from
/// device memory, so that one capture serves every batch that fits.
struct StepSizes {
  int32_t num_tokens = 0;
  int32_t num_sequences = 0;
  int32_t num_rows = 0;  // of results: num_sequences, unless some have spans
  int32_t longest_sequence = 0;
  bool has_token_types = false;

  auto operator<=>(const StepSizes&) const = default;  // NOLINT(modernize-use-nullptr): not our 0
};

/// The smallest padded sizes that hold a step. Tokens: 16, 32, then multiples of 64 up to 1024,
/// then of 256: a product over 16 rows costs what one over a single row does, and above the loss is
/// under 6 % from 1024 tokens on. Sequences, rows and the longest sequence: powers of two (the
/// longest from 16), since they only bound grids; so a step without spans has as many padded rows
/// as padded sequences. Pure.
StepSizes PadStep(const StepSizes& sizes);

/// The padded numbers of tokens from the smallest to the one that holds `max_tokens`.
std::vector<int64_t> PaddedTokenCounts(int32_t max_tokens);

/// The padded sizes that a server captures at start if asked to: every number of tokens as one
/// sequence (up to `max_length` of them), and batches of equal lengths in powers of two. Within
/// kMostGraphTokens and the three limits; each size once. `has_token_types` is left false.
std::vector<StepSizes> StartupGrid(int32_t max_tokens, int32_t max_sequences, int32_t max_length);

}  // namespace bouquet::rose
