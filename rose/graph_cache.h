#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "base/check.h"
#include "rose/step_grid.h"

namespace bouquet::rose {

/// What became of steps since the start.
struct GraphCounts {
  int64_t replays = 0;
  int64_t captures = 0;
  int64_t eager = 0;      // launched one by one
  int64_t evictions = 0;  // graphs given up for others
};

/// Which steps are captured, and when. A padded size that is seen for the first time runs eagerly
/// (most are not seen again), the second time it is captured, from then on replayed. At most
/// `capacity` sizes are kept; the one that was not used for longest goes first. `Graph` is whatever
/// a device makes of a capture. Thread: one.
template <class Graph>
class GraphCache {
 public:
  enum class Action : uint8_t { kRunEagerly, kCapture, kReplay };

  /// With `captures_at_once`, the first time already.
  GraphCache(size_t capacity, bool captures_at_once)
      : capacity_(capacity), captures_at_once_(captures_at_once) {
    CHECK_GT(capacity, 0U);
  }

  /// What to do with a step of these padded sizes. After kCapture call Insert (or SetUncapturable),
  /// after kReplay call Find.
  Action Next(const StepSizes& sizes) {
    const auto found = entries_.find(sizes);
    if (found == entries_.end()) {
      Add(sizes);
      return captures_at_once_ ? Action::kCapture : RunEagerly();
    }
    recency_.splice(recency_.begin(), recency_, found->second.place);
    if (found->second.has_graph) {
      Count(replays_);
      return Action::kReplay;
    }
    return found->second.cannot_be_captured ? RunEagerly() : Action::kCapture;
  }

  const Graph& Find(const StepSizes& sizes) const { return entries_.at(sizes).graph; }

  const Graph& Insert(const StepSizes& sizes, Graph graph) {
    Entry& entry = entries_.at(sizes);
    entry.graph = std::move(graph);
    entry.has_graph = true;
    Count(captures_);
    return entry.graph;
  }

  /// A capture failed: these sizes run eagerly for good.
  void SetUncapturable(const StepSizes& sizes) {
    entries_.at(sizes).cannot_be_captured = true;
    Count(eager_);
  }

  size_t size() const { return entries_.size(); }
  /// Thread: any.
  GraphCounts counts() const {
    return {replays_.load(std::memory_order_relaxed), captures_.load(std::memory_order_relaxed),
            eager_.load(std::memory_order_relaxed), evictions_.load(std::memory_order_relaxed)};
  }

 private:
  struct Entry {
    Graph graph{};
    bool has_graph = false;
    bool cannot_be_captured = false;
    std::list<StepSizes>::iterator place;
  };

  static void Count(std::atomic<int64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  }

  Action RunEagerly() {
    Count(eager_);
    return Action::kRunEagerly;
  }

  void Add(const StepSizes& sizes) {
    if (entries_.size() == capacity_) {
      const auto oldest = entries_.find(recency_.back());
      if (oldest->second.has_graph) {
        Count(evictions_);
      }
      entries_.erase(oldest);
      recency_.pop_back();
    }
    recency_.push_front(sizes);
    entries_[sizes].place = recency_.begin();
  }

  size_t capacity_;
  bool captures_at_once_;
  std::map<StepSizes, Entry> entries_;
  std::list<StepSizes> recency_;  // most recently used first
  std::atomic<int64_t> replays_{0}, captures_{0}, eager_{0}, evictions_{0};
};

}  // namespace bouquet::rose
