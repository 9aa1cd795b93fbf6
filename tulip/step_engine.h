#pragma once

#include "rose/batch.h"
#include "rose/engine.h"
#include "rose/lazy_tensor.h"

namespace bouquet::tulip {

/// What Tulip asks of an engine: rose::Engine, or a fake one in tests. The contract is
/// rose::Engine's: Step never waits, and at most info().steps_under_way results are alive.
class StepEngine {
 public:
  virtual ~StepEngine() = default;
  virtual rose::LazyTensor Step(const rose::Batch& batch) = 0;
  virtual const rose::EngineInfo& info() const = 0;
};

}  // namespace bouquet::tulip
