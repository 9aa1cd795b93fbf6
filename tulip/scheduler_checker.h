#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "tulip/scheduler.h"

namespace bouquet::tulip {

/// For tests and the fuzzer: drives a Scheduler and holds it to its promises after every call, by a
/// plain model of what waits (a map from id to facts). Aborts where one is broken:
/// order within a class, step target, sequences per step, nothing lost, nothing twice, nothing
/// starved, nothing late or cancelled computed, no step closed while the next in order would fit.
/// Does not cover: threads, and what becomes of the sequences afterwards.
class SchedulerChecker {
 public:
  explicit SchedulerChecker(const SchedulerOptions& options)
      : options_(options), scheduler_(options) {}

  void Add(TimePoint now, model::TrafficClass traffic_class, int32_t num_tokens,
           Deadline deadline) {
    std::stop_source source;
    const int32_t id = next_id_++;
    Sequence sequence;
    sequence.ids.assign(static_cast<size_t>(num_tokens), id);
    sequence.traffic_class = traffic_class;
    sequence.deadline = deadline;
    sequence.arrival = now;
    sequence.reply = std::make_shared<SilentReply>(source.get_token());
    waiting_[id] = {traffic_class, num_tokens, deadline, now, std::move(source)};
    scheduler_.Add(std::move(sequence));
    CheckCounts();
  }

  /// Cancels the `n`-th of those that wait, counted round.
  void Cancel(size_t n) {
    if (!waiting_.empty()) {
      std::next(waiting_.begin(), static_cast<ptrdiff_t>(n % waiting_.size()))
          ->second.cancelled.request_stop();
    }
  }

  /// One step. Returns how many sequences it computes.
  size_t Step(TimePoint now) {
    const bool aged_bulk = HasAgedBulk(now);
    const bool found = scheduler_.NextBatch(now, batch_);
    CHECK_EQ(found, !batch_.sequences.empty());
    for (const Sequence& sequence : batch_.cancelled) {
      CHECK(Remove(sequence).cancelled.stop_requested());
    }
    for (const Sequence& sequence : batch_.expired) {
      CHECK(Remove(sequence).deadline.HasPassed(now));
    }
    CheckBatch(now);
    CheckTurns(aged_bulk);
    CheckCounts();
    return batch_.sequences.size();
  }

  bool empty() const { return waiting_.empty(); }

 private:
  class SilentReply final : public ChunkReply {
   public:
    using ChunkReply::ChunkReply;
    void OnComplete() override {}
  };

  struct Facts {
    model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
    int32_t num_tokens = 0;
    Deadline deadline;
    TimePoint arrival;
    std::stop_source cancelled;
  };

  Facts Remove(const Sequence& sequence) {
    const auto found = waiting_.find(sequence.ids.front());
    CHECK(found != waiting_.end());  // known, and not given out before
    Facts facts = found->second;
    CHECK_EQ(facts.num_tokens, sequence.num_tokens());
    waiting_.erase(found);
    return facts;
  }

  bool HasAgedBulk(TimePoint now) const {
    for (const auto& [id, facts] : waiting_) {
      if (facts.traffic_class == model::TrafficClass::kBulk && !facts.cancelled.stop_requested() &&
          !facts.deadline.HasPassed(now)) {
        return now - facts.arrival >= options_.bulk_age;  // the first alive one
      }
    }
    return false;
  }

  const Facts* FirstWaiting(model::TrafficClass traffic_class) const {
    for (const auto& [id, facts] : waiting_) {
      if (facts.traffic_class == traffic_class) {
        return &facts;
      }
    }
    return nullptr;
  }

  void CheckBatch(TimePoint now) {
    const rose::Batch& input = batch_.input;
    CHECK_EQ(static_cast<size_t>(input.num_sequences()), batch_.sequences.size());
    bulk_taken_ = 0;
    int64_t num_tokens = 0;
    for (size_t i = 0; i < batch_.sequences.size(); ++i) {
      const Sequence& sequence = batch_.sequences[i];
      CHECK_EQ(input.token_ids[static_cast<size_t>(num_tokens)], sequence.ids.front());
      num_tokens += sequence.num_tokens();
      CHECK_EQ(static_cast<int64_t>(input.sequence_offsets[i + 1]), num_tokens);
      const Facts facts = Remove(sequence);
      CHECK(!facts.cancelled.stop_requested());
      CHECK(!facts.deadline.HasPassed(now));
      // Within a class first come first served: nothing of it that came before still waits.
      for (const auto& [id, other] : waiting_) {
        CHECK(other.traffic_class != facts.traffic_class || id > sequence.ids.front());
      }
      bulk_taken_ += facts.traffic_class == model::TrafficClass::kBulk ? 1 : 0;
    }
    CHECK_LE(batch_.sequences.size(), static_cast<size_t>(options_.max_batch_sequences));
    CHECK(num_tokens <= options_.step_tokens || batch_.sequences.size() == 1);
    for (const auto& [id, facts] : waiting_) {
      CHECK(!facts.cancelled.stop_requested());
      CHECK(!facts.deadline.HasPassed(now));
    }
  }

  void CheckTurns(bool aged_bulk) {
    const bool bulk_turn = aged_bulk && passed_over_ + 1 >= Scheduler::kStepsPerBulkTurn;
    const Facts* interactive = FirstWaiting(model::TrafficClass::kInteractive);
    const Facts* bulk = FirstWaiting(model::TrafficClass::kBulk);
    const Facts* next = bulk_turn ? bulk : interactive;
    const Facts* other = bulk_turn ? interactive : bulk;
    if (next == nullptr) {
      next = other;
    }
    if (next != nullptr) {  // who stays behind would not have fitted
      CHECK(!batch_.sequences.empty());
      CHECK(batch_.num_tokens() + next->num_tokens > options_.step_tokens ||
            static_cast<int32_t>(batch_.sequences.size()) >= options_.max_batch_sequences);
    }
    if (bulk_taken_ > 0 && !bulk_turn) {
      CHECK(interactive == nullptr);
    }
    CHECK(!bulk_turn || bulk_taken_ > 0);
    passed_over_ = aged_bulk && bulk_taken_ == 0 ? passed_over_ + 1 : 0;
    CHECK_LT(passed_over_, Scheduler::kStepsPerBulkTurn);
  }

  void CheckCounts() const {
    int64_t num_tokens = 0;
    for (const auto& [id, facts] : waiting_) {
      num_tokens += facts.num_tokens;
    }
    CHECK_EQ(scheduler_.num_tokens(), num_tokens);
    CHECK_EQ(scheduler_.num_sequences(), static_cast<int64_t>(waiting_.size()));
  }

  const SchedulerOptions options_;
  Scheduler scheduler_;
  ScheduledBatch batch_;
  std::map<int32_t, Facts> waiting_;  // by id, so in order of arrival
  int32_t next_id_ = 1;
  int32_t bulk_taken_ = 0;
  int32_t passed_over_ = 0;
};

}  // namespace bouquet::tulip
