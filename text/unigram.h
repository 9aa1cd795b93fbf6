#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/double_array_trie.h"
#include "text/token_model.h"

namespace bouquet::text {

/// What a Unigram model is made of; strings point into the file that was parsed.
struct UnigramSpec {
  TokenList tokens;  // ids are positions; of a token that is listed twice the last id counts
  std::vector<double> scores;  // by id, log-probabilities; finite
  int32_t unknown_id = 0;
  /// An unknown run becomes its bytes' tokens, "<0x0A>", where the vocabulary has them all.
  bool byte_fallback = false;
};

/// The unigram language model (Kudo 2018): of all ways to cut a piece into tokens the one with the
/// highest sum of scores, the first found of equals. Where no token is the one character at hand,
/// an unknown one of 10 less than the lowest score is; unknown characters side by side are one.
/// Viterbi's algorithm, linear in the length of the piece. Immutable as seen from outside. Thread:
/// any.
class Unigram final : public TokenModel {
 public:
  /// Error: kInvalidArgument for an unknown id that the vocabulary lacks.
  static Result<std::unique_ptr<Unigram>> Create(const UnigramSpec& spec);

  void Encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t Id(std::string_view token) const override;
  /// Listed tokens, also those that are listed twice: the next free id is counted so.
  size_t num_tokens() const override { return scores_.size(); }

 private:
  static constexpr int32_t kNone = DoubleArrayTrie::kNoValue;

  explicit Unigram(const UnigramSpec& spec);

  class Output;
  void Search(std::string_view piece, EncodeScratch& scratch, Output& output) const;

  // How a whole piece that is a token comes out of the search: not yet known, as that token, in
  // parts. Found out when such a piece is first met, and the same whoever finds it.
  enum class Whole : uint8_t { kUnknown, kOne, kParts };

  DoubleArrayTrie trie_;
  std::vector<double> scores_;
  int32_t unknown_id_;
  double unknown_score_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_{};
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // by id
};

}  // namespace bouquet::text
