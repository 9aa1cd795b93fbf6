#pragma once

#include <cstdint>

#include "rose/batch.h"
#include "rose/engine.h"
#include "rose/lazy_tensor.h"

namespace bouquet::tulip {

/// Steps of an engine that captures some of them as graphs, since it was loaded.
struct GraphUse {
  int64_t replays = 0;    // one launch
  int64_t captures = 0;   // recorded, then launched as one
  int64_t evictions = 0;  // graphs given up for others
};

/// What Tulip asks of an engine: rose::Engine, or a fake one in tests. The contract is
/// rose::Engine's: Step never waits, and at most info().steps_under_way results are alive.
class StepEngine {
 public:
  virtual ~StepEngine() = default;
  virtual rose::LazyTensor Step(const rose::Batch& batch) = 0;
  virtual const rose::EngineInfo& info() const = 0;

  /// Zeros where nothing is captured.
  virtual GraphUse graph_use() const { return {}; }
  /// What a step of these tokens and sequences computes: more, where steps are padded.
  virtual int32_t PaddedTokens(int32_t num_tokens, int32_t /*num_sequences*/) const {
    return num_tokens;
  }
};

}  // namespace bouquet::tulip
