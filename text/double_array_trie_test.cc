#include "text/double_array_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace bouquet::text {
namespace {

TEST(DoubleArrayTrieTest, FindsTheSameLongestPrefixesAsAMap) {
  std::mt19937 random(7);
  const auto random_string = [&](size_t max_size) {
    std::string text(1 + random() % max_size, '\0');
    for (char& c : text) {
      // Few letters, so that keys share prefixes; and the ends of the byte range.
      constexpr char kLetters[] = {'\0', 'a', 'b', 'c', '\x7F', '\x80', '\xFF'};
      c = kLetters[random() % std::size(kLetters)];
    }
    return text;
  };
  std::map<std::string, int32_t> keys;
  for (int32_t i = 0; i < 5000; ++i) {
    keys[random_string(8)] = i;
  }
  std::vector<DoubleArrayTrie::Entry> entries(keys.begin(), keys.end());
  std::shuffle(entries.begin(), entries.end(), random);
  const DoubleArrayTrie trie = DoubleArrayTrie::Build(entries);
  EXPECT_EQ(trie.num_keys(), keys.size());
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_string(12);
    DoubleArrayTrie::Match expected = {0, DoubleArrayTrie::kNoValue};
    for (size_t size = 1; size <= text.size(); ++size) {
      if (const auto found = keys.find(text.substr(0, size)); found != keys.end()) {
        expected = {size, found->second};
      }
    }
    const DoubleArrayTrie::Match match = trie.LongestPrefix(text);
    EXPECT_EQ(match.num_bytes, expected.num_bytes);
    EXPECT_EQ(trie.Find(text),
              expected.num_bytes == text.size() ? expected.value : DoubleArrayTrie::kNoValue);
    EXPECT_EQ(match.value, expected.value);
  }
}

TEST(DoubleArrayTrieTest, KeepsTheLastOfEqualKeysAndSkipsEmptyOnes) {
  const DoubleArrayTrie trie = DoubleArrayTrie::Build({{"a", 1}, {"", 2}, {"a", 3}});
  EXPECT_EQ(trie.num_keys(), 1U);
  EXPECT_EQ(trie.LongestPrefix("ab").value, 3);
  EXPECT_EQ(trie.LongestPrefix("").num_bytes, 0U);
}

TEST(DoubleArrayTrieTest, MatchesNothingWhenEmpty) {
  const DoubleArrayTrie trie = DoubleArrayTrie::Build({});
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(trie.Step(DoubleArrayTrie::kRoot, static_cast<unsigned char>(byte)),
              DoubleArrayTrie::kDead);
  }
  EXPECT_EQ(DoubleArrayTrie().LongestPrefix("a").num_bytes, 0U);
}

}  // namespace
}  // namespace bouquet::text
