#include "text/wordpiece.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {

WordPiece::WordPiece(const WordPieceSpec& spec)
    : trie_(DoubleArrayTrie::Build(spec.tokens)),
      continuing_(trie_.Walk(DoubleArrayTrie::kRoot, spec.continuing_prefix)),
      unknown_id_(Id(spec.unknown_token)),
      max_characters_per_word_(static_cast<size_t>(spec.max_characters_per_word)),
      has_empty_token_(
          std::ranges::any_of(spec.tokens, [](const auto& token) { return token.first.empty(); })) {
  CHECK_GE(unknown_id_, 0);
}

int32_t WordPiece::Id(std::string_view token) const { return trie_.Find(token); }

void WordPiece::Encode(std::string_view word, EncodeScratch& /*scratch*/, std::vector<int32_t>& ids,
                       std::vector<ByteSpan>* spans) const {
  const auto num_bytes = static_cast<uint32_t>(word.size());
  if (word.size() > max_characters_per_word_ &&
      unicode::CountCodePoints(word) > max_characters_per_word_) {
    ids.push_back(unknown_id_);
    if (spans != nullptr) {
      spans->push_back({0, num_bytes});
    }
    return;
  }
  const size_t size_before = ids.size();
  DoubleArrayTrie::Node from = DoubleArrayTrie::kRoot;
  while (!word.empty()) {
    // A token is whole code points, so a match ends between two.
    const DoubleArrayTrie::Match match = from == DoubleArrayTrie::kDead
                                             ? DoubleArrayTrie::Match{0, DoubleArrayTrie::kNoValue}
                                             : trie_.LongestPrefix(word, from);
    if (match.num_bytes == 0) {
      if (spans != nullptr) {
        spans->resize(spans->size() - (ids.size() - size_before));
        spans->push_back({0, num_bytes});
      }
      ids.resize(size_before);
      ids.push_back(unknown_id_);
      return;
    }
    ids.push_back(match.value);
    word.remove_prefix(match.num_bytes);
    if (spans != nullptr) {
      const uint32_t end = num_bytes - static_cast<uint32_t>(word.size());
      spans->push_back({end - static_cast<uint32_t>(match.num_bytes), end});
    }
    from = continuing_;
  }
}

}  // namespace bouquet::text
