#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace bouquet::cli {

/// How far a long run is, on standard error: one line redrawn twice a second on a terminal, else a
/// line every ten seconds.
class Progress {
 public:
  /// `enabled` false prints nothing but still counts.
  Progress(const Clock& clock, bool enabled);

  void Add(int64_t texts, int64_t tokens);
  /// `fraction` of the input read so far, or negative when its size is not known.
  void Draw(double fraction);
  /// The closing line: totals and rates.
  std::string Summary() const;
  void Clear();

 private:
  std::string Line(double fraction) const;
  double SecondsSoFar() const;

  const Clock& clock_;
  bool enabled_;
  bool terminal_;
  TimePoint start_;
  TimePoint next_draw_;
  int64_t texts_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace bouquet::cli
