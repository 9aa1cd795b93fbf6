#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet::text {

/// A regular expression of a tokenizer.json, run by the reference library's own engine, Oniguruma
/// (docs/decisions/0010). Immutable after Compile. Thread: any.
class Regex {
 public:
  static constexpr size_t kMaxExpressionBytes = 1 << 16;

  /// Error: kInvalidArgument with the engine's reason, kUnimplemented naming what is not served.
  static Result<std::shared_ptr<const Regex>> Compile(std::string_view expression);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  const std::string& expression() const { return expression_; }

 private:
  friend class RegexMatches;
  struct Compiled;
  explicit Regex(std::string_view expression);

  std::string expression_;
  std::unique_ptr<Compiled> compiled_;
};

/// The matches in a text from left to right, as the reference iterates: none overlap, and an empty
/// one directly behind another is left out. An expression may backtrack without end: the steps for
/// one text are limited by its length, the memory by a constant, and one that needs more gives up.
class RegexMatches {
 public:
  struct Match {
    size_t begin;  // bytes
    size_t end;
  };

  /// Both must outlive this.
  RegexMatches(const Regex& regex, std::string_view text);

  /// nullopt at the end, and where it gives up.
  std::optional<Match> Next();
  /// kInvalidArgument once it gave up: names the expression and the place in the text.
  Status status() const;

 private:
  std::optional<Match> Search();

  const Regex* regex_;
  std::string_view text_;
  size_t begin_ = 0;                 // of the next search
  std::optional<size_t> match_end_;  // of the last match
  unsigned long tries_left_;         // beyond the cheap ones
  bool gave_up_ = false;
};

/// Calls `on_segment(segment, is_match)` for matches and what lies between them: consecutive, and
/// together the text. Matches may be empty. Error: as RegexMatches.
template <class OnSegment>
Status ForEachSegment(const Regex& regex, std::string_view text, OnSegment on_segment) {
  RegexMatches matches(regex, text);
  size_t done = 0;
  while (const std::optional<RegexMatches::Match> match = matches.Next()) {
    if (done < match->begin) {
      on_segment(text.substr(done, match->begin - done), false);
    }
    on_segment(text.substr(match->begin, match->end - match->begin), true);
    done = match->end;
  }
  if (done < text.size()) {
    on_segment(text.substr(done), false);
  }
  return matches.status();
}

}  // namespace bouquet::text
