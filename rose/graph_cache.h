#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
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
/// `max_sizes` are remembered, and their graphs take at most `max_bytes`: what was not used for
/// longest goes first. `Graph` is whatever a device makes of a capture. Thread: one.
template <class Graph>
class GraphCache {
 public:
  enum class Action : uint8_t { kRunEagerly, kCapture, kReplay };

  /// With `captures_at_once`, the first time already.
  GraphCache(size_t max_sizes, int64_t max_bytes, bool captures_at_once)
      : max_sizes_(max_sizes), max_bytes_(max_bytes), captures_at_once_(captures_at_once) {
    CHECK_GT(max_sizes, 0U);
  }

  /// Before the first Insert.
  void set_max_bytes(int64_t max_bytes) { max_bytes_ = max_bytes; }

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

  /// Makes room for a graph of `bytes` and keeps it. False when it alone takes more than all may:
  /// nothing is kept then, and these sizes run eagerly for good.
  bool Insert(const StepSizes& sizes, Graph graph, int64_t bytes) {
    if (bytes > max_bytes_) {
      SetUncapturable(sizes);
      return false;
    }
    // The sizes of this graph are at the front.
    for (auto place = std::prev(recency_.end()); graph_bytes_ > max_bytes_ - bytes; --place) {
      DropGraph(entries_.at(*place));
    }
    Entry& entry = entries_.at(sizes);
    entry.graph = std::move(graph);
    entry.has_graph = true;
    entry.bytes = bytes;
    graph_bytes_ += bytes;
    Count(captures_);
    return true;
  }

  /// A capture failed: these sizes run eagerly for good.
  void SetUncapturable(const StepSizes& sizes) {
    entries_.at(sizes).cannot_be_captured = true;
    Count(eager_);
  }

  size_t size() const { return entries_.size(); }
  int64_t graph_bytes() const { return graph_bytes_; }
  /// Thread: any.
  GraphCounts counts() const {
    return {replays_.load(std::memory_order_relaxed), captures_.load(std::memory_order_relaxed),
            eager_.load(std::memory_order_relaxed), evictions_.load(std::memory_order_relaxed)};
  }

 private:
  struct Entry {
    Graph graph{};
    int64_t bytes = 0;
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

  void DropGraph(Entry& entry) {
    if (entry.has_graph) {
      entry.graph = Graph{};
      entry.has_graph = false;
      graph_bytes_ -= entry.bytes;
      Count(evictions_);
    }
  }

  void Add(const StepSizes& sizes) {
    if (entries_.size() == max_sizes_) {
      const auto oldest = entries_.find(recency_.back());
      DropGraph(oldest->second);
      entries_.erase(oldest);
      recency_.pop_back();
    }
    recency_.push_front(sizes);
    entries_[sizes].place = recency_.begin();
  }

  size_t max_sizes_;
  int64_t max_bytes_;
  int64_t graph_bytes_ = 0;
  bool captures_at_once_;
  std::map<StepSizes, Entry> entries_;
  std::list<StepSizes> recency_;  // most recently used first
  std::atomic<int64_t> replays_{0}, captures_{0}, eager_{0}, evictions_{0};
};

}  // namespace bouquet::rose
