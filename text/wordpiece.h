#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/double_array_trie.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace bouquet::text {

/// What a WordPiece model is made of; strings point into the file that was parsed.
struct WordPieceSpec {
  std::vector<std::pair<std::string_view, int32_t>> tokens;  // ids in 0 .. Vocabulary::kMaxTokens-1
  std::string unknown_token;                                 // one of `tokens`
  std::string continuing_prefix;                             // "##"; may be empty
  int64_t max_characters_per_word = 100;
};

/// Cuts a word greedily into the longest tokens of the vocabulary, from the left; a word that
/// cannot be cut, or is too long, is one unknown token. Immutable. Thread: any.
class WordPiece {
 public:
  explicit WordPiece(const WordPieceSpec& spec);

  /// Appends the ids of `word` (valid UTF-8, not empty).
  void Encode(std::string_view word, std::vector<int32_t>& ids) const;
  /// The id of a token as the vocabulary spells it, or -1.
  int32_t Id(std::string_view token) const;
  /// Distinct token strings.
  size_t num_tokens() const { return trie_.num_keys() + (has_empty_token_ ? 1 : 0); }

 private:
  DoubleArrayTrie trie_;                  // every token as it is spelled
  DoubleArrayTrie::Node continuing_ = 0;  // where the prefix leads; kDead: no token has it
  int32_t unknown_id_ = 0;
  size_t max_characters_per_word_ = 0;
  bool has_empty_token_ = false;  // counts, and never matches
};

/// Normalizer, pre-tokenizer, WordPiece and added tokens put together.
class WordPieceTokenizer final : public Tokenizer {
 public:
  /// `added` as the file states them, in its order. Their ids follow the reference: that of the
  /// model's vocabulary, else the next free one; a file that states another is warned about.
  /// Error: kUnimplemented for a normalized token that normalizes to nothing; kInvalidArgument when
  /// ids run out.
  static Result<std::unique_ptr<WordPieceTokenizer>> Create(const WordPieceSpec& spec,
                                                            Normalizer normalizer,
                                                            PreTokenizer pre_tokenizer,
                                                            const std::vector<AddedToken>& added);

  void Encode(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
              std::vector<int32_t>& ids) const override;
  std::string_view Piece(int32_t id) const override { return vocabulary_.Piece(id); }
  int32_t vocabulary_size() const override { return vocabulary_.size(); }

 private:
  WordPieceTokenizer(const WordPieceSpec& spec, Normalizer normalizer, PreTokenizer pre_tokenizer);
  Result<std::vector<AddedToken>> SettleIds(const std::vector<AddedToken>& added) const;
  Status AddTokens(const std::vector<AddedToken>& settled);

  WordPiece model_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenMatcher raw_added_;
  AddedTokenMatcher normalized_added_;
  Vocabulary vocabulary_;
};

}  // namespace bouquet::text
