#include "text/word_level.h"

#include <algorithm>

#include "base/check.h"

namespace bouquet::text {

WordLevel::WordLevel(const WordLevelSpec& spec)
    : trie_(DoubleArrayTrie::Build(spec.tokens)),
      unknown_id_(Id(spec.unknown_token)),
      has_empty_token_(
          std::ranges::any_of(spec.tokens, [](const auto& token) { return token.first.empty(); })) {
  CHECK_GE(unknown_id_, 0);
}

int32_t WordLevel::Id(std::string_view token) const { return trie_.Find(token); }

void WordLevel::Encode(std::string_view word, EncodeScratch& /*scratch*/, std::vector<int32_t>& ids,
                       std::vector<ByteSpan>* spans) const {
  const int32_t id = Id(word);
  ids.push_back(id >= 0 ? id : unknown_id_);
  if (spans != nullptr) {
    spans->push_back({0, static_cast<uint32_t>(word.size())});
  }
}

}  // namespace bouquet::text
