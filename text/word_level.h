#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/double_array_trie.h"
#include "text/token_model.h"

namespace bouquet::text {

/// What a WordLevel model is made of; strings point into the file that was parsed.
struct WordLevelSpec {
  TokenList tokens;
  std::string unknown_token;  // one of `tokens`
};

/// A piece that is a token of the vocabulary is that token, any other the unknown one. Immutable.
/// Thread: any.
class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const WordLevelSpec& spec);

  void Encode(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t Id(std::string_view token) const override;
  size_t num_tokens() const override { return trie_.num_keys() + (has_empty_token_ ? 1 : 0); }

 private:
  DoubleArrayTrie trie_;
  int32_t unknown_id_ = 0;
  bool has_empty_token_ = false;  // counts, and never matches
};

}  // namespace bouquet::text
