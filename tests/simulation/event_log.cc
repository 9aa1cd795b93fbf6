#include "tests/simulation/event_log.h"

namespace bouquet::simulation {

void EventLog::AddLine(std::string_view text) {
  const int64_t us =
      std::chrono::duration_cast<Microseconds>(clock_.Now().time_since_epoch()).count() -
      1'000'000'000;  // time starts at 1000 s
  std::string line = fmt::format("{:>6}.{:06} {}", us / 1'000'000, us % 1'000'000, text);
  for (const char c : line) {
    hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  }
  ++num_lines_;
  if (print_) {
    fmt::print("{}\n", line);
  }
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > kKeptLines) {
    last_lines_.pop_front();
  }
}

}  // namespace bouquet::simulation
