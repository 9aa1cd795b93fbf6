#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/double_array_trie.h"
#include "text/token_model.h"

namespace bouquet::text {

/// What a WordPiece model is made of; strings point into the file that was parsed.
struct WordPieceSpec {
  TokenList tokens;
  std::string unknown_token;      // one of `tokens`
  std::string continuing_prefix;  // "##"; may be empty
  int64_t max_characters_per_word = 100;
};

/// Cuts a word greedily into the longest tokens of the vocabulary, from the left; a word that
/// cannot be cut, or is too long, is one unknown token. Immutable. Thread: any.
class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const WordPieceSpec& spec);

  void Encode(std::string_view word, EncodeScratch& scratch, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t Id(std::string_view token) const override;
  size_t num_tokens() const override { return trie_.num_keys() + (has_empty_token_ ? 1 : 0); }

 private:
  DoubleArrayTrie trie_;                  // every token as it is spelled
  DoubleArrayTrie::Node continuing_ = 0;  // where the prefix leads; kDead: no token has it
  int32_t unknown_id_ = 0;
  size_t max_characters_per_word_ = 0;
  bool has_empty_token_ = false;  // counts, and never matches
};

}  // namespace bouquet::text
