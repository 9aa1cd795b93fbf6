#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace bouquet::text {

/// A BERT-like tokenizer.json of our own for tests and fuzz targets: ids are easy to read.
///   0 [PAD]  1 [UNK]  2 [CLS]  3 [SEP]  4 [MASK]; a..j are 10..19, ##a..##j are 20..29
inline constexpr std::string_view kSmallTokenizerJson = R"({
  "version": "1.0",
  "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
  "padding": {"strategy": {"Fixed": 32}, "direction": "Right", "pad_to_multiple_of": null,
              "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [
    {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 4, "content": "[MASK]", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true},
    {"id": 35, "content": "Jade", "single_word": true, "lstrip": false, "rstrip": true, "normalized": true, "special": false}
  ],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
             {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}
  },
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {
    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {
      "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "中": 5, "国": 6, ".": 7, "[": 8, "]": 9,
      "a": 10, "b": 11, "c": 12, "d": 13, "e": 14, "f": 15, "g": 16, "h": 17, "i": 18, "j": 19,
      "##a": 20, "##b": 21, "##c": 22, "##d": 23, "##e": 24, "##f": 25, "##g": 26, "##h": 27, "##i": 28, "##j": 29,
      "bad": 30, "##age": 31, "cab": 32, "##ce": 33, "face": 34
    }
  }
})";

/// Byte-level BPE as Qwen's files state it, on a small vocabulary.
inline constexpr std::string_view kSmallBpeJson = R"({
  "version": "1.0",
  "added_tokens": [], "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
      "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
      "vocab": {"a": 0, "b": 1, "Ġ": 2, "1": 3, "Ã": 4, "©": 5, "ab": 6, "Ġab": 7, "Ã©": 8},
      "merges": ["a b", "Ġ ab", "Ã ©"]}})";

/// A Unigram model as conversions of SentencePiece files state it, on a small vocabulary.
inline constexpr std::string_view kSmallUnigramJson = R"({
  "version": "1.0",
  "added_tokens": [
    {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 9, "content": "<mask>", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true}
  ],
  "normalizer": {"type": "NFKC"},
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "post_processor": null, "decoder": null,
  "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
    "vocab": [["<unk>", 0.0], ["a", -2.5], ["▁", -2.0], ["b", -3.0], ["▁a", -3.5], ["▁ab", -5.0],
              ["é", -6.0], ["中", -6.5], ["国", -7.0], ["<mask>", 0.0]]}})";

/// BPE on characters with bytes to fall back to, as conversions of LLaMA's files state it.
inline constexpr std::string_view kSmallLlamaJson = R"({
  "version": "1.0",
  "added_tokens": [
    {"id": 1, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
  ],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null, "post_processor": null, "decoder": null,
  "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
    "vocab": {"<unk>": 0, "<s>": 1, "▁": 2, "a": 3, "b": 4, "▁a": 5, "ab": 6, "▁ab": 7,
              "<0xE4>": 8, "<0xB8>": 9, "<0xAD>": 10},
    "merges": [["▁", "a"], ["a", "b"], ["▁a", "b"]]}})";

/// One of these with one passage replaced, for tests of what a file may say.
inline std::string Replaced(std::string_view json, std::string_view passage,
                            std::string_view replacement) {
  std::string text(json);
  if (const size_t at = text.find(passage); at != std::string::npos) {
    text.replace(at, passage.size(), replacement);
  }
  return text;
}
inline std::string SmallTokenizerWith(std::string_view passage, std::string_view replacement) {
  return Replaced(kSmallTokenizerJson, passage, replacement);
}
inline std::string SmallUnigramWith(std::string_view passage, std::string_view replacement) {
  return Replaced(kSmallUnigramJson, passage, replacement);
}
inline std::string SmallLlamaWith(std::string_view passage, std::string_view replacement) {
  return Replaced(kSmallLlamaJson, passage, replacement);
}
inline std::string SmallBpeWith(std::string_view passage, std::string_view replacement) {
  return Replaced(kSmallBpeJson, passage, replacement);
}

inline void WriteFile(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace bouquet::text
