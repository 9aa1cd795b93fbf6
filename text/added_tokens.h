#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/double_array_trie.h"

namespace bouquet::text {

/// One entry of tokenizer.json's "added_tokens".
struct AddedToken {
  static constexpr int32_t kNoId = -1;  // the file states none
  std::string content;
  int32_t id = 0;
  bool special = false;      // kept out of texts that are read literally (parse_special false)
  bool normalized = false;   // looked for in the normalized text, else in the raw one
  bool single_word = false;  // not where a word character stands next to it
  bool lstrip = false;       // takes the whitespace on its left along
  bool rstrip = false;
};

/// Finds added tokens in a text: leftmost first, of those the longest, without overlap. Immutable.
/// Thread: any.
class AddedTokenMatcher {
 public:
  /// `patterns[i]` is what to look for as `tokens[i]`: its content, or that normalized. Of equal
  /// patterns the lowest id wins (the reference picks at random). Patterns must not be empty.
  static AddedTokenMatcher Build(std::vector<AddedToken> tokens,
                                 const std::vector<std::string>& patterns);

  bool empty() const { return tokens_.empty(); }

  /// Calls, in order, `on_text(std::string_view)` for what lies between tokens (never empty) and
  /// `on_token(int32_t id, std::string_view)` for each token, with the whitespace that it takes.
  /// With `parse_special` false a special token that matches is text; what it overlaps does not
  /// match either, as in the reference.
  template <class OnText, class OnToken>
  void Split(std::string_view text, bool parse_special, OnText on_text, OnToken on_token) const {
    size_t done = 0;  // everything before it has been handed out
    for (size_t from = 0; !empty();) {
      const Found found = Find(text, from);
      if (found.token == nullptr) {
        break;
      }
      from = found.end;
      const AddedToken& token = *found.token;
      if ((token.special && !parse_special) ||
          (token.single_word && !StandsAlone(text, found.begin, found.end))) {
        continue;
      }
      const size_t begin = token.lstrip ? BeginWithSpace(text, found.begin, done) : found.begin;
      const size_t end = token.rstrip ? EndWithSpace(text, found.end) : found.end;
      if (done < begin) {
        on_text(text.substr(done, begin - done));
      }
      on_token(token.id, text.substr(begin, end - begin));
      done = end;
    }
    if (done < text.size()) {
      on_text(text.substr(done));
    }
  }

 private:
  struct Found {
    const AddedToken* token = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };
  Found Find(std::string_view text, size_t from) const;
  static bool StandsAlone(std::string_view text, size_t begin, size_t end);
  static size_t BeginWithSpace(std::string_view text, size_t begin, size_t done);
  static size_t EndWithSpace(std::string_view text, size_t end);

  std::vector<AddedToken> tokens_;
  DoubleArrayTrie trie_;                  // pattern → index in tokens_
  std::array<bool, 256> starts_token_{};  // by first byte
  int single_first_byte_ = -1;            // when all patterns start with one byte
};

}  // namespace bouquet::text
