// Batches built from random sequences and spans, then spoiled: ValidateBatch refuses with a message
// and a field, or everything that a step reads lies where it must, and a slot of the ring takes it.
// Four bytes are one action. Does not cover: running the step.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rose/backend/factory.h"
#include "rose/batch.h"
#include "rose/step_slot.h"

namespace bouquet::rose {
namespace {

constexpr BatchLimits kLimits = {.vocabulary_rows = 100,
                                 .token_types = 2,
                                 .max_positions = 16,
                                 .max_tokens = 64,
                                 .max_sequences = 8,
                                 .width = 40,
                                 .max_rows = 24,
                                 .takes_spans = true};

/// A sequence of up to 16 tokens whose spans start where `bits` has ones.
void AddSequence(uint8_t length, uint8_t bits, uint8_t output, Batch* batch) {
  const std::vector<int32_t> ids(size_t{1} + length % 16, length % 100);
  const auto end = static_cast<int32_t>(ids.size());
  std::vector<TokenSpan> spans;
  for (int32_t begin = 0; begin < 8 && begin < end; ++begin) {
    if ((bits >> begin & 1) != 0) {
      if (!spans.empty()) {
        spans.back().end = begin;
      }
      spans.push_back({begin, end});
    }
  }
  model::OutputSpec spec;
  spec.dtype = static_cast<model::RowDtype>(output % 4);
  spec.dimensions = output / 4 % 48;
  batch->Add(ids, {}, 0, spec, spans);
}

void Spoil(uint8_t which, uint8_t index, int32_t value, Batch* batch) {
  const auto set = [index, value](std::vector<int32_t>& values) {
    if (value == 127) {
      values.push_back(index);
    } else if (!values.empty()) {
      values[index % values.size()] = value == -128 ? 2'147'483'647 : value;
    }
  };
  switch (which % 8) {
    case 0: set(batch->token_ids); break;
    case 1: set(batch->positions); break;
    case 2: set(batch->sequence_offsets); break;
    case 3: set(batch->pooling_starts); break;
    case 4: set(batch->spans_per_sequence); break;
    case 5: batch->spans.push_back({value, index}); break;
    case 6:
      if (!batch->spans.empty()) {
        batch->spans[index % batch->spans.size()].begin = value;
      }
      break;
    default:
      if (!batch->spans.empty()) {
        batch->spans[index % batch->spans.size()].end = value;
      }
  }
}

void CheckAccepted(const Batch& batch) {
  size_t span = 0;
  size_t rows = 0;
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    const int32_t begin = batch.sequence_offsets[i];
    const int32_t end = batch.sequence_offsets.at(i + 1);
    CHECK(0 <= begin && begin < end && end <= batch.num_tokens());
    CHECK(0 <= batch.pooling_starts.at(i) && batch.pooling_starts[i] < end - begin);
    const uint32_t asked = batch.outputs[i].dimensions;
    const uint32_t dimensions = asked == 0 ? 40 : asked;
    CHECK(dimensions <= 40 && (!IsSignBits(batch.outputs[i].dtype) || dimensions % 8 == 0));
    const int32_t count = batch.num_spans_of(static_cast<int32_t>(i));
    CHECK_GE(count, 0);
    int32_t last_end = 0;
    for (int32_t j = 0; j < count; ++j) {
      const TokenSpan one = batch.spans.at(span++);
      CHECK(last_end <= one.begin && one.begin < one.end && one.end <= end - begin);
      last_end = one.end;
    }
    rows += count == 0 ? 1 : static_cast<size_t>(count);
  }
  CHECK_EQ(span, batch.spans.size());
  CHECK_LE(rows, size_t{24});
}

struct Slot {
  Slot() {
    Result<std::unique_ptr<Backend>> made = CreateBackend({.device = "cpu", .threads = 1});
    CHECK(made.ok());
    backend = std::move(made).value();
    Result<std::unique_ptr<StepSlot>> in_ring = StepSlot::Make(0, kLimits, forward, *backend);
    CHECK(in_ring.ok());
    slot = std::move(in_ring).value();
  }
  std::unique_ptr<Backend> backend;
  StepSlot::Forward forward;
  std::unique_ptr<StepSlot> slot;
};

}  // namespace
}  // namespace bouquet::rose

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using bouquet::Status;
  using bouquet::rose::Batch;
  static const bouquet::rose::Slot kSlot;
  Batch batch;
  constexpr size_t kMaxActions = 64;
  for (size_t i = 0; i + 3 < size && i < 4 * kMaxActions; i += 4) {
    if (data[i] % 4 != 0) {
      bouquet::rose::AddSequence(data[i + 1], data[i + 2], data[i + 3], &batch);
    } else {
      bouquet::rose::Spoil(data[i + 1], data[i + 2], static_cast<int8_t>(data[i + 3]), &batch);
    }
  }
  const Status status = ValidateBatch(batch, bouquet::rose::kLimits);
  if (!status.ok()) {
    CHECK(!status.message().empty() && !status.field().empty());
    return 0;
  }
  bouquet::rose::CheckAccepted(batch);
  kSlot.slot->Fill(batch);
  return 0;
}
