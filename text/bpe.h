#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/double_array_trie.h"
#include "text/token_model.h"

namespace bouquet::text {

/// What a BPE model is made of; strings point into the file that was parsed.
struct BpeSpec {
  TokenList tokens;
  /// By rank: the first is merged first. Of a pair that is listed twice the last rank counts.
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  std::string unknown_token;  // empty: what the vocabulary lacks is dropped
  /// Tokens are written in the alphabet of byte_level.h, and pieces are bytes.
  bool byte_level = false;
  // What the vocabulary lacks becomes its bytes' tokens, "<0x0A>"; not together with byte_level.
  bool byte_fallback = false;
  bool fuse_unknown = false;   // unknown characters side by side are one unknown token
  bool ignore_merges = false;  // a piece that is a token is that token, whatever merges would make
};

/// Byte-pair encoding (Sennrich et al. 2016): a piece starts as bytes or characters; of all
/// neighbours the pair with the lowest rank is merged, the leftmost first, until none can be.
/// n log n in the length of a short piece, linear in that of a long one. Immutable as seen from
/// outside. Thread: any.
class Bpe final : public TokenModel {
 public:
  /// Error: kInvalidArgument for a merge or an unknown token that the vocabulary lacks.
  static Result<std::unique_ptr<Bpe>> Create(const BpeSpec& spec);

  void Encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t Id(std::string_view token) const override;
  size_t num_tokens() const override { return num_tokens_; }

 private:
  static constexpr int32_t kNone = DoubleArrayTrie::kNoValue;
  static constexpr uint32_t kNoRank = UINT32_MAX;

  /// (left, right) → rank and merged token; open addressing, half full at most.
  class MergeTable {
   public:
    struct Merge {
      uint32_t rank;
      int32_t id;
    };
    explicit MergeTable(size_t count);
    void Insert(int32_t left, int32_t right, Merge merge);
    const Merge* Find(int32_t left, int32_t right) const;

   private:
    struct Slot {
      uint64_t key;
      Merge merge;
    };
    size_t First(uint64_t key) const;
    std::vector<Slot> slots_;
    int shift_ = 0;
  };

  Bpe(const BpeSpec& spec, size_t num_merges);
  Status AddTokens(const BpeSpec& spec);
  Status AddMerges(const BpeSpec& spec);
  void Begin(std::string_view piece, std::vector<BpeSymbol>& symbols) const;
  void BeginAtCharacter(std::string_view character, std::vector<BpeSymbol>& symbols,
                        BpeSymbol& unknown) const;
  void Merge(EncodeScratch& scratch) const;
  void MergeFew(std::vector<BpeSymbol>& symbols) const;
  void MergeShort(EncodeScratch& scratch) const;
  void MergeLong(std::vector<BpeSymbol>& symbols, BpeQueue& queue) const;
  bool MakeMerge(std::vector<BpeSymbol>& symbols, int32_t at, int32_t id) const;
  void MarkInnerCharacters(std::string_view token);
  size_t FirstCut(std::string_view piece) const;
  uint32_t EncodePart(std::string_view part, uint32_t position, EncodeScratch& scratch,
                      std::vector<int32_t>& ids, std::vector<ByteSpan>* spans) const;
  uint32_t AppendSpans(std::string_view piece, uint32_t position,
                       const std::vector<BpeSymbol>& symbols, std::vector<ByteSpan>& spans) const;
  void MoveOverDroppedBytes(std::string_view piece, std::span<ByteSpan> spans) const;
  void QueueMerge(const std::vector<BpeSymbol>& symbols, int32_t left, int32_t right,
                  std::vector<BpeMerge>& queue) const;

  // How a whole piece that is a token comes out of the merges: not yet known, as that token, in
  // parts. Found out when such a piece is first met, and the same whoever finds it.
  enum class Whole : uint8_t { kUnknown, kOne, kParts };

  bool byte_level_;
  bool byte_fallback_;
  bool fuse_unknown_;
  bool ignore_merges_;
  int32_t unknown_id_ = kNone;
  DoubleArrayTrie trie_;                                   // tokens as bytes of text
  std::unordered_map<std::string, int32_t> other_tokens_;  // that stand for no bytes
  size_t num_tokens_ = 0;
  std::array<int32_t, 256> byte_ids_{};  // of single bytes, or of "<0xNN>" with byte_fallback
  MergeTable merges_;
  std::vector<int32_t> ids_by_rank_;  // of the token that the merge of each rank makes
  // Where text is not cut into words before, a piece is the whole of it. It is cut here, before a
  // known character that no merged token has behind another known one, unless that is the same:
  // SentencePiece's U+2581, and most ideographs. No merge reaches over such a place.
  std::vector<bool> starts_word_;                // by id, of tokens that are one character
  std::array<bool, 256> may_start_word_{};       // by first byte
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // by id
  int32_t num_ids_ = 0;
  // Merges go by ids: where tokens share one, what a token's spelling says of it does not hold, and
  // neither whole pieces nor cuts are taken for granted; a merge may outlive a change of what it
  // joins, and the reference then makes it. Only hostile files have such.
  bool has_shared_ids_ = false;
};

}  // namespace bouquet::text
