#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "testing/fake_row.h"

namespace bouquet::simulation {

// What the ids of an input say in a world, so that whoever sees them knows whose they are.

constexpr int32_t kVocabularyRows = 1 << 30;
constexpr int32_t kMinInputTokens = 3;

constexpr size_t kInputMark = 0;  // its number in the world
constexpr size_t kCallMark = 1;   // 0; at a server the number of the call that brought it
constexpr size_t kKindMark = 2;   // what becomes of it in a step
enum : int32_t { kOrdinary = 0, kPoisoned = 1, kNotFinite = 2 };

/// The row of an input, whichever call brought it.
inline std::vector<float> RowOf(std::span<const int32_t> ids, uint32_t dimensions) {
  std::vector<int32_t> sent(ids.begin(), ids.end());
  sent[kCallMark] = 0;
  return testing::FakeRow(sent, dimensions);
}

}  // namespace bouquet::simulation
