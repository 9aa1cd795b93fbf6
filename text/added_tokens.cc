#include "text/added_tokens.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {

AddedTokenMatcher AddedTokenMatcher::Build(std::vector<AddedToken> tokens,
                                           const std::vector<std::string>& patterns) {
  CHECK_EQ(tokens.size(), patterns.size());
  AddedTokenMatcher matcher;
  // Highest id first: the trie keeps the last of equal keys.
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return tokens[a].id > tokens[b].id; });
  std::vector<DoubleArrayTrie::Entry> entries;
  for (const size_t i : order) {
    CHECK(!patterns[i].empty());
    entries.emplace_back(patterns[i], static_cast<int32_t>(i));
    matcher.starts_token_[static_cast<unsigned char>(patterns[i][0])] = true;
  }
  if (std::ranges::count(matcher.starts_token_, true) == 1) {
    matcher.single_first_byte_ = static_cast<unsigned char>(patterns[0][0]);
  }
  matcher.trie_ = DoubleArrayTrie::Build(entries);
  matcher.tokens_ = std::move(tokens);
  return matcher;
}

AddedTokenMatcher::Found AddedTokenMatcher::Find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (single_first_byte_ >= 0) {
      begin = text.find(static_cast<char>(single_first_byte_), begin);
      if (begin == std::string_view::npos) {
        break;
      }
    } else if (!starts_token_[static_cast<unsigned char>(text[begin])]) {
      continue;
    }
    const DoubleArrayTrie::Match match = trie_.LongestPrefix(text.substr(begin));
    if (match.num_bytes > 0) {
      return {&tokens_[static_cast<size_t>(match.value)], begin, begin + match.num_bytes};
    }
  }
  return {};
}

bool AddedTokenMatcher::StandsAlone(std::string_view text, size_t begin, size_t end) {
  const std::string_view before = text.substr(0, begin);
  const std::string_view after = text.substr(end);
  const auto is_word = [](std::string_view at) {
    return unicode::Has(unicode::Decode(at).value, unicode::kWord);
  };
  return (before.empty() || !is_word(before.substr(unicode::LastCodePointStart(before)))) &&
         (after.empty() || !is_word(after));
}

size_t AddedTokenMatcher::BeginWithSpace(std::string_view text, size_t begin, size_t done) {
  while (begin > done) {
    const size_t previous = unicode::LastCodePointStart(text.substr(0, begin));
    if (!unicode::Has(unicode::Decode(text.substr(previous)).value, unicode::kWhitespace)) {
      break;
    }
    begin = previous;
  }
  // The token before may have taken this whitespace, and more.
  return std::max(begin, done);
}

size_t AddedTokenMatcher::EndWithSpace(std::string_view text, size_t end) {
  while (end < text.size()) {
    const auto [c, num_bytes] = unicode::Decode(text.substr(end));
    if (!unicode::Has(c, unicode::kWhitespace)) {
      break;
    }
    end += num_bytes;
  }
  return end;
}

}  // namespace bouquet::text
