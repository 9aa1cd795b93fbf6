#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rose/engine.h"
#include "tulip/step_engine.h"

namespace bouquet::testing {

/// An engine of MiniLM's size that answers zeros at once: what is left is the way through. For
/// benchmarks.
class NullStepEngine final : public tulip::StepEngine {
 public:
  NullStepEngine() {
    info_.limits = {30'522, 2, 512, 4096, 512, 384, 512};
    source_.rows.resize(size_t{512} * 384);
    source_.statuses.assign(512, rose::RowStatus::kOk);
    for (uint32_t i = 0; i <= 512; ++i) {
      source_.offsets.push_back(i);
    }
    source_.block = {model::Head::kDense, model::RowDtype::kFloat32, 384, source_.offsets,
                     std::as_bytes(std::span<const float>(source_.rows))};
  }
  rose::LazyTensor Step(const rose::Batch& batch) override {
    source_.num_sequences = static_cast<size_t>(batch.num_sequences());
    return rose::LazyTensor(&source_);
  }
  const rose::EngineInfo& info() const override { return info_; }

 private:
  struct Source final : rose::LazyTensor::Source {
    bool IsReady() const override { return true; }
    Result<rose::StepResult> Wait() override {
      return rose::StepResult{std::span(&block, 1), std::span(statuses).first(num_sequences)};
    }
    size_t num_sequences = 0;
    std::vector<float> rows;
    std::vector<uint32_t> offsets;
    std::vector<rose::RowStatus> statuses;
    model::RowBlock block;
  };
  Source source_;
  rose::EngineInfo info_;
};

}  // namespace bouquet::testing
