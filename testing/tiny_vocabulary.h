#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace bouquet::testing {

// A WordPiece vocabulary of our own: special tokens, the letters and a few words. Letters are
// tokens by themselves and pieces, so that every lower-case text has ids.
inline constexpr int32_t kTinyCls = 2;
inline constexpr int32_t kTinySep = 3;
inline constexpr int32_t kTinyRose = 5;
inline constexpr int32_t kTinyTulip = 6;
inline constexpr int32_t kTinyIvy = 7;
inline constexpr int32_t kTinyVocabularyRows = 8 + 2 * 26;

/// Writes vocab.txt for text::TextPipeline::Load.
inline void WriteTinyVocabulary(const std::filesystem::path& folder) {
  std::ofstream out(folder / "vocab.txt");
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rose", "tulip", "ivy"}) {
    out << token << "\n";
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    out << letter << "\n";
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    out << "##" << letter << "\n";
  }
}

}  // namespace bouquet::testing
