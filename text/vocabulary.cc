#include "text/vocabulary.h"

#include "base/check.h"

namespace bouquet::text {

void Vocabulary::Set(int32_t id, std::string_view piece) {
  CHECK_GE(id, 0);
  CHECK_LT(id, kMaxTokens);
  const auto index = static_cast<size_t>(id);
  if (index >= places_.size()) {
    places_.resize(index + 1);
  }
  places_[index] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(piece.size())};
  bytes_.append(piece);
}

std::string_view Vocabulary::Piece(int32_t id) const {
  if (!Has(id)) {
    return {};
  }
  const Place place = places_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(place.offset, place.num_bytes);
}

}  // namespace bouquet::text
