// Any bytes as tokenizer.json: refused with a message, or a tokenizer that encodes within its
// vocabulary. Does not cover vocab.txt and tokenizer_config.json.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "text/encode_scratch.h"
#include "text/tokenizer_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Files that state other ids for added tokens are warned about, one line each.
  static const bool quiet = bouquet::StartLogging("off", "text").ok();
  CHECK(quiet);
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto file = bouquet::text::ParseTokenizerJson(json, "fuzz", size % 2 == 0);
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return 0;
  }
  bouquet::text::EncodeScratch scratch;
  std::vector<int32_t> ids;
  const std::string_view text = "Bad  [SEP] cabbage, jade [MASK]! 中国 \u0130e\u0301\u0327 각 12";
  const bouquet::Status status = file.value().tokenizer->Encode(text, {}, scratch, ids);
  if (!status.ok()) {
    return 0;  // an expression of the file gave up
  }
  for (const int32_t id : ids) {
    CHECK_GE(id, 0);
    CHECK_LT(id, file.value().tokenizer->vocabulary_size());
  }
  return 0;
}
