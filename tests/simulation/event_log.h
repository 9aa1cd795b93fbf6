#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"

namespace bouquet::simulation {

/// What has happened in a world, a line each, and what should not have. A hash of all lines says
/// whether two runs were the same; the last lines are kept to be shown.
class EventLog {
 public:
  static constexpr size_t kKeptLines = 60;

  /// `print`: every line to standard output as it is added.
  EventLog(const Clock& clock, bool print) : clock_(clock), print_(print) {}

  template <class... Args>
  void Add(fmt::format_string<Args...> text, Args&&... args) {
    AddLine(fmt::format(text, std::forward<Args>(args)...));
  }

  /// An invariant: `holds`, or the world has failed.
  template <class... Args>
  void Expect(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) {
      violations_.push_back(fmt::format(text, std::forward<Args>(args)...));
      AddLine("VIOLATION: " + violations_.back());
    }
  }

  uint64_t hash() const { return hash_; }
  int64_t num_lines() const { return num_lines_; }
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void AddLine(std::string_view text);

  const Clock& clock_;
  const bool print_;
  uint64_t hash_ = 0xCBF29CE484222325;  // FNV-1a
  int64_t num_lines_ = 0;
  std::deque<std::string> last_lines_;
  std::vector<std::string> violations_;
};

}  // namespace bouquet::simulation
