#include "text/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "text/regex_translation.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

const OnigUChar* Bytes(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

// A try is a step back to a place where the expression had a choice. Most searches need few, and
// those cost nothing of what a text may spend, so that its whole cost is linear in its length.
constexpr unsigned long kCheapTries = 1000;
constexpr unsigned long kTriesOfAnyText = 10'000'000;
constexpr unsigned long kTriesPerByte = 100;
// Of the choices that are open at a time, about 40 bytes each.
constexpr unsigned int kMaxOpenChoices = 1 << 21;

/// What the engine writes to while it searches. One per thread: its arrays grow with the number of
/// groups of an expression, and are then reused.
struct SearchState {
  SearchState() : region(onig_region_new()), limits(onig_new_match_param()) {
    CHECK(region != nullptr && limits != nullptr);
    onig_initialize_match_param(limits);
    onig_set_match_stack_limit_size_of_match_param(limits, kMaxOpenChoices);
  }
  ~SearchState() {
    onig_region_free(region, 1);
    onig_free_match_param(limits);
  }
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  OnigRegion* region;
  OnigMatchParam* limits;
};

SearchState& StateOfThread() {
  thread_local SearchState state;
  return state;
}

}  // namespace

struct Regex::Compiled {
  ~Compiled() { onig_free(regex); }
  regex_t* regex = nullptr;
};

Regex::Regex(std::string_view expression)
    : expression_(expression), compiled_(std::make_unique<Compiled>()) {}
Regex::~Regex() = default;

Result<std::shared_ptr<const Regex>> Regex::Compile(std::string_view expression) {
  if (expression.size() > kMaxExpressionBytes) {
    return InvalidArgument(fmt::format("a regular expression is too long: {} bytes, limit {}",
                                       expression.size(), kMaxExpressionBytes));
  }
  if (unicode::FindInvalidUtf8(expression).has_value()) {
    return InvalidArgument("a regular expression is not valid UTF-8");
  }
  ASSIGN_OR_RETURN(const std::string translated, TranslateRegex(expression));
  static std::mutex mutex;  // the engine's parser shares tables that it fills on first use
  const std::lock_guard<std::mutex> lock(mutex);
  OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
  CHECK_EQ(onig_initialize(encodings, 1), ONIG_NORMAL);
  std::shared_ptr<Regex> regex(new Regex(expression));
  OnigErrorInfo info;
  const char* begin = translated.data();
  const int result =
      onig_new(&regex->compiled_->regex, Bytes(begin), Bytes(begin + translated.size()),
               ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (result != ONIG_NORMAL) {
    OnigUChar reason[ONIG_MAX_ERROR_MESSAGE_LEN];
    const int length = onig_error_code_to_str(reason, result, &info);
    return InvalidArgument(fmt::format(
        "a regular expression has a mistake: {}: {}",
        std::string_view(reinterpret_cast<const char*>(reason), static_cast<size_t>(length)),
        expression));
  }
  return std::shared_ptr<const Regex>(std::move(regex));
}

RegexMatches::RegexMatches(const Regex& regex, std::string_view text)
    : regex_(&regex), text_(text), tries_left_(kTriesOfAnyText + kTriesPerByte * text.size()) {}

std::optional<RegexMatches::Match> RegexMatches::Next() {
  while (begin_ <= text_.size() && !text_.empty() && !gave_up_) {
    const std::optional<Match> match = Search();
    if (!match) {
      begin_ = gave_up_ ? begin_ : text_.size() + 1;
      return std::nullopt;
    }
    const bool follows_another = match->begin == match->end && match_end_ == match->end;
    if (!follows_another) {
      begin_ = match->end;
      match_end_ = match->end;
      return match;
    }
    begin_ += begin_ < text_.size() ? unicode::Decode(text_.substr(begin_)).num_bytes : 1;
  }
  return std::nullopt;
}

/// The first match from begin_ on. A search that runs out of tries starts again with ten times as
/// many, which are taken from what the text may spend.
std::optional<RegexMatches::Match> RegexMatches::Search() {
  SearchState& state = StateOfThread();
  const OnigUChar* begin = Bytes(text_.data());
  const OnigUChar* end = begin + text_.size();
  for (unsigned long tries = kCheapTries;;) {
    onig_set_retry_limit_in_match_of_match_param(state.limits, tries);
    onig_set_retry_limit_in_search_of_match_param(state.limits, tries);
    const int result = onig_search_with_param(regex_->compiled_->regex, begin, end, begin + begin_,
                                              end, state.region, ONIG_OPTION_NONE, state.limits);
    if (result >= 0) {
      return Match{static_cast<size_t>(state.region->beg[0]),
                   static_cast<size_t>(state.region->end[0])};
    }
    if (result == ONIG_MISMATCH) {
      return std::nullopt;
    }
    const bool may_go_on = (result == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER ||
                            result == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER) &&
                           tries_left_ > 0;
    if (!may_go_on) {
      gave_up_ = true;
      return std::nullopt;
    }
    tries = std::min(10 * tries, tries_left_);
    tries_left_ -= tries;
  }
}

Status RegexMatches::status() const {
  if (!gave_up_) {
    return {};
  }
  return InvalidArgument(
      fmt::format("the tokenizer's regular expression takes too long on this text, from byte {} "
                  "on: limits {} steps and {} open choices: {}",
                  begin_, kTriesOfAnyText + kTriesPerByte * text_.size(), kMaxOpenChoices,
                  regex_->expression()),
      "text");
}

}  // namespace bouquet::text
