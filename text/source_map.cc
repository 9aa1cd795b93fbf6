#include "text/source_map.h"

#include "text/unicode/utf8.h"

namespace bouquet::text {

void ServeClaims(std::string_view input, const std::vector<int32_t>& claims,
                 std::string_view output, SourceMap& sources) {
  size_t claimed_to = 0;
  size_t source = 0;
  size_t place = 0;
  for (const int32_t claim : claims) {
    if (claim > 0) {
      source = claimed_to;
    } else if (claimed_to > 0) {
      source = claimed_to - 1;
    }
    for (int32_t i = 0; i < claim && claimed_to < input.size(); ++i) {
      claimed_to += unicode::Decode(input.substr(claimed_to)).num_bytes;
    }
    const uint32_t num_bytes = unicode::Decode(output.substr(place)).num_bytes;
    sources.Same(source, num_bytes);
    place += num_bytes;
  }
}

}  // namespace bouquet::text
