#pragma once

#include <memory>

#include "base/status.h"
#include "rose/step_result.h"

namespace bouquet::rose {

/// The result of a step under way. Lifetime rule: the rows live in a ring slot of the engine, one
/// slot per step that may be under way (EngineInfo::steps_under_way). A slot is reused by the step
/// that many later, so: wait for a LazyTensor, take what is needed out of its StepResult, and
/// destroy it before starting the step that needs its slot.
class LazyTensor {
 public:
  /// What a backend knows about a step it has started. Implemented by the engine's slots.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool IsReady() const = 0;
    virtual Result<StepResult> Wait() = 0;
  };

  LazyTensor() = default;
  /// A step that has been started. `source` must outlive this.
  explicit LazyTensor(Source* source) : source_(source) {}
  /// A step that was refused before it started: Wait returns `error`.
  explicit LazyTensor(Status error) : error_(std::move(error)) {}

  /// True when Wait would not block. Thread: any.
  bool IsReady() const { return source_ == nullptr || source_->IsReady(); }

  /// Blocks until the step has ended. Thread: any one. Error: what the step failed with.
  Result<StepResult> Wait() {
    if (source_ == nullptr) {
      return error_.ok() ? Internal("a LazyTensor without a step was waited for") : error_;
    }
    return source_->Wait();
  }

 private:
  Source* source_ = nullptr;
  Status error_;
};

}  // namespace bouquet::rose
