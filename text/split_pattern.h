#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bouquet::text {

/// The regular expressions by which published byte-level tokenizers cut text into words. Each
/// matches every text from end to end, so that its matches are the pieces. `\p{L}`, `\p{N}` and
/// `\s` are those of the engine that the reference runs them with (unicode::kRegexLetter, …).
enum class SplitPattern : uint8_t {
  /// GPT-2, RoBERTa, OLMo, ModernBERT:
  ///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  /// Qwen 2 and 3: contractions in any case, numbers digit by digit, line breaks with what stands
  /// before them:
  ///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  ///   \s*[\r\n]+|\s+(?!\S)|\s+
  kQwen2,
  /// Llama 3, cl100k: the same with \p{N}{1,3}.
  kLlama3,
};

/// The pattern that `regex` spells, or nullopt for one that is not known.
std::optional<SplitPattern> FindSplitPattern(std::string_view regex);

/// Appends the matches, one after the other; none is empty. Linear in the length of `text`.
void SplitByPattern(SplitPattern pattern, std::string_view text,
                    std::vector<std::string_view>& pieces);

}  // namespace bouquet::text
