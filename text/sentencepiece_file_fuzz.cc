// Any bytes as a SentencePiece model file, and as a charsmap: refused with a message, or a
// tokenizer that encodes within its vocabulary. The first byte picks how the file is used. Does not
// cover tokenizer_config.json.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "text/charsmap.h"
#include "text/encode_scratch.h"
#include "text/sentencepiece_file.h"
#include "text/source_map.h"

namespace {

using bouquet::text::SentencePieceUse;

constexpr std::string_view kText =
    "Bad  <s> cabbage, \u2581ab <mask>! 中国 \u0130e\u0301\u0327 각 \r\n\u00A9\u200D\u00A9 12 "
    "<extra_id_0>";

SentencePieceUse UseOf(uint8_t byte) {
  using Kind = SentencePieceUse::Kind;
  constexpr Kind kKinds[] = {Kind::kPlain, Kind::kT5, Kind::kXlmRoberta};
  return {.kind = kKinds[byte % 3],
          .num_extra_ids = byte / 3 % 4,
          .prefixes_every_section = (byte & 0x40) == 0,
          .adds_bos = (byte & 0x80) != 0};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = bouquet::StartLogging("off", "text").ok();
  CHECK(quiet);
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto charsmap = bouquet::text::Charsmap::Parse(bytes); charsmap.ok()) {
    std::vector<int32_t> claims;
    std::string out;
    charsmap.value().Normalize(kText, claims, bouquet::text::NoSources(), out);
    std::string again;
    std::vector<uint32_t> sources;
    charsmap.value().Normalize(kText, claims, bouquet::text::SourceMap(sources), again);
    CHECK(again == out);
    CHECK_EQ(sources.size(), out.size());
  }
  const auto file = bouquet::text::ParseSentencePiece(bytes, "fuzz", UseOf(data[0]), size % 2 == 0);
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return 0;
  }
  bouquet::text::EncodeScratch scratch;
  std::vector<int32_t> ids;
  CHECK(file.value().tokenizer->Encode(kText, {}, scratch, ids).ok());
  for (const int32_t id : ids) {
    CHECK_GE(id, 0);
    CHECK_LT(id, file.value().tokenizer->vocabulary_size());
  }
  return 0;
}
