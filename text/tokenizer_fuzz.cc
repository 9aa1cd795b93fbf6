// Any text through tokenizers of several configurations: ids are in range, the same every time, and
// do not depend on what the scratch was used for before; spans are passages of the text. The first
// byte picks configuration and options. Does not cover whether the ids are the right ones:
// reference_ids_test.cc, parity.py.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/encode_scratch.h"
#include "text/sentencepiece_file.h"
#include "text/small_charsmap.h"
#include "text/small_sentencepiece.h"
#include "text/small_tokenizer.h"
#include "text/tokenizer_file.h"
#include "text/unicode/utf8.h"

namespace {

using bouquet::text::EncodeScratch;
using bouquet::text::SmallBpeWith;
using bouquet::text::SmallLlamaWith;
using bouquet::text::SmallTokenizerWith;
using bouquet::text::SmallUnigramWith;
using bouquet::text::TokenizerFile;

std::vector<TokenizerFile> LoadConfigurations() {
  constexpr std::string_view kNormalizer = "{\"type\": \"BertNormalizer\"";
  constexpr std::string_view kPreTokenizer = "{\"type\": \"BertPreTokenizer\"}";
  std::vector<TokenizerFile> files;
  const auto add = [&files](const std::string& json) {
    files.push_back(bouquet::text::ParseTokenizerJson(json, "small", false).value());
  };
  add(std::string(bouquet::text::kSmallTokenizerJson));
  for (const char* form : {"NFC", "NFD", "NFKC", "NFKD"}) {
    add(SmallTokenizerWith(kNormalizer, std::string("{\"type\": \"") + form + "\""));
  }
  add(SmallTokenizerWith("\"strip_accents\": null", "\"strip_accents\": false"));
  add(SmallTokenizerWith("\"clean_text\": true", "\"clean_text\": false"));
  add(SmallTokenizerWith(kNormalizer, R"({"type": "Sequence", "normalizers": [{"type": "Nmt"},
      {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "StripAccents"},
      {"type": "Replace", "pattern": {"String": "ab"}, "content": "[S"}, {"type": "Lowercase"},
      {"type": "Prepend", "prepend": "b"}])"));
  add(SmallTokenizerWith(kPreTokenizer, R"({"type": "Whitespace"})"));
  add(SmallTokenizerWith(kPreTokenizer, "null"));
  for (const char* behavior : {"Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"}) {
    add(SmallTokenizerWith(
        kPreTokenizer, std::string(R"({"type": "Sequence", "pretokenizers": [{"type": "Split",
        "pattern": {"String": "a"}, "invert": false, "behavior": ")") +
                           behavior + R"("}, {"type": "Digits", "individual_digits": false}]})"));
  }
  add(std::string(bouquet::text::kSmallBpeJson));
  add(SmallBpeWith("\"unk_token\": null", "\"unk_token\": \"1\""));
  add(SmallBpeWith("\"byte_fallback\": false", "\"ignore_merges\": true"));
  add(SmallBpeWith(R"("add_prefix_space": false, "trim_offsets": false, "use_regex": false)",
                   R"("add_prefix_space": true, "trim_offsets": false, "use_regex": true)"));
  constexpr std::string_view kNfkc = "{\"type\": \"NFKC\"}";
  const std::string charsmap = "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"" +
                               bouquet::text::Base64(bouquet::text::SmallCharsmapBlob()) + "\"}";
  add(SmallUnigramWith(kNfkc, charsmap));
  add(SmallUnigramWith(kNfkc,
                       R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"})"));
  add(SmallUnigramWith("\"always\", \"split\": true", "\"first\", \"split\": false"));
  add(SmallUnigramWith("\"always\"", "\"never\""));
  add(SmallUnigramWith("\"byte_fallback\": false", "\"byte_fallback\": true"));
  add(std::string(bouquet::text::kSmallLlamaJson));
  add(SmallLlamaWith("\"byte_fallback\": true", "\"byte_fallback\": false"));
  add(SmallTokenizerWith(kPreTokenizer, R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{L}\\p{M}*|(?=\\d)|[^\\S\\n]+(?!\\w)"},
       "invert": false, "behavior": "MergedWithPrevious"},
      {"type": "FixedLength", "length": 3}]})json"));
  add(SmallTokenizerWith(kNormalizer, R"json({"type": "Sequence", "normalizers": [
      {"type": "Replace", "pattern": {"Regex": "\\s+|(?<=\\p{Lu})(?=\\p{Ll})"}, "content": " b"},
      {"type": "ByteLevel"}])json"));
  for (const bouquet::sentencepiece::Model& model :
       {bouquet::text::SmallUnigramModel(), bouquet::text::SmallBpeModel()}) {
    files.push_back(
        bouquet::text::ParseSentencePiece(model.SerializeAsString(), "small", {}, false).value());
  }
  return files;
}

std::vector<int32_t> Encode(const TokenizerFile& file, std::string_view text, bool parse_special,
                            EncodeScratch& scratch) {
  std::vector<int32_t> ids;
  CHECK(file.tokenizer->Encode(text, {.parse_special = parse_special}, scratch, ids).ok());
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<TokenizerFile> files = LoadConfigurations();
  static EncodeScratch used;
  if (size == 0) {
    return 0;
  }
  const TokenizerFile& file = files[(data[0] >> 1) % files.size()];
  const bool parse_special = (data[0] & 1) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (bouquet::text::unicode::FindInvalidUtf8(text).has_value()) {
    return 0;
  }
  EncodeScratch fresh;
  const std::vector<int32_t> ids = Encode(file, text, parse_special, fresh);
  CHECK(Encode(file, text, parse_special, used) == ids);
  bouquet::text::TokenSpans spans;
  std::vector<int32_t> ids_with_spans;
  CHECK(file.tokenizer
            ->EncodeWithSpans(text, {.parse_special = parse_special}, used, ids_with_spans, spans)
            .ok());
  CHECK(ids_with_spans == ids);
  CHECK_EQ(spans.spans.size(), ids.size());
  for (const auto& [begin, end] : spans.spans) {
    CHECK_LT(begin, end);
    CHECK_LE(end, text.size());
    CHECK(!bouquet::text::unicode::FindInvalidUtf8(text.substr(begin, end - begin)).has_value());
  }
  // Any bytes as ids, too: what comes out is UTF-8.
  const std::vector<int32_t> bytes(text.begin(), text.end());
  for (const std::vector<int32_t>* list : {&ids, &bytes}) {
    const auto decoded = file.tokenizer->Decode(*list, {.skip_special_tokens = parse_special});
    CHECK(decoded.ok());
    CHECK(!bouquet::text::unicode::FindInvalidUtf8(decoded.value()).has_value());
  }
  for (const int32_t id : ids) {
    CHECK_GE(id, 0);
    CHECK_LT(id, file.tokenizer->vocabulary_size());
    CHECK(!file.tokenizer->Piece(id).empty());
  }
  return 0;
}
