#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bouquet::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRedraw(500);
constexpr milliseconds kLineEvery(10'000);

}  // namespace

Progress::Progress(const Clock& clock, bool enabled)
    : clock_(clock),
      enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(clock.Now()),
      next_draw_(start_ + (terminal_ ? kRedraw : kLineEvery)) {}

void Progress::Add(int64_t texts, int64_t tokens) {
  texts_ += texts;
  tokens_ += tokens;
}

double Progress::SecondsSoFar() const {
  return std::chrono::duration<double>(clock_.Now() - start_).count();
}

std::string Progress::Line(double fraction) const {
  const double seconds = std::max(SecondsSoFar(), 1e-9);
  std::string line =
      fmt::format("{} texts, {:.0f} texts/s, {:.0f} tokens/s", texts_,
                  static_cast<double>(texts_) / seconds, static_cast<double>(tokens_) / seconds);
  if (fraction > 0) {
    line += fmt::format(", {:.0f} %, {:.0f} s left", 100 * fraction, seconds / fraction - seconds);
  }
  return line;
}

void Progress::Draw(double fraction) {
  if (!enabled_ || clock_.Now() < next_draw_) {
    return;
  }
  next_draw_ = clock_.Now() + (terminal_ ? kRedraw : kLineEvery);
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", Line(fraction), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void Progress::Clear() {
  if (enabled_ && terminal_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

std::string Progress::Summary() const {
  return fmt::format("{} in {:.1f} s", Line(-1), SecondsSoFar());
}

}  // namespace bouquet::cli
