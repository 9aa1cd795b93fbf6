#include "text/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/byte_level.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using Kind = DecoderStage::Kind;
using Tokens = std::vector<std::string>;
using Replacement = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Every occurrence, from the left; `pattern` must not be empty.
void ReplaceAll(std::string_view pattern, std::string_view content, std::string& text) {
  size_t found = text.find(pattern);
  if (found == std::string::npos) {
    return;
  }
  std::string replaced;
  size_t done = 0;
  for (; found != std::string::npos; found = text.find(pattern, done)) {
    replaced.append(text, done, found - done).append(content);
    done = found + pattern.size();
  }
  text = replaced.append(text, done);
}

constexpr Replacement kPunctuation[] = {{" .", "."},  {" ?", "?"},     {" !", "!"},  {" ,", ","},
                                        {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}};
constexpr Replacement kNegation = {" do not", " don't"};
constexpr Replacement kContractions[] = {{" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

/// The tokenizers library shortens a negation between the others; transformers does not.
void CleanUp(bool shortens_negation, std::string& text) {
  for (const auto& [pattern, content] : kPunctuation) {
    ReplaceAll(pattern, content, text);
  }
  if (shortens_negation) {
    ReplaceAll(kNegation.first, kNegation.second, text);
  }
  for (const auto& [pattern, content] : kContractions) {
    ReplaceAll(pattern, content, text);
  }
}

void DecodeWordPiece(const DecoderStage& stage, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0) {
      token = token.starts_with(stage.pattern) ? token.substr(stage.pattern.size()) : " " + token;
    }
    if (stage.clean_up) {
      CleanUp(true, token);
    }
  }
}

/// How many bytes at the start of `text` are one character, or one try at one that cannot be
/// completed (Unicode, section 3.9: maximal subparts); `valid` says which.
size_t FirstPart(std::string_view text, bool& valid) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const size_t size = first < 0x80                     ? 1
                      : first >= 0xC2 && first < 0xE0  ? 2
                      : first >= 0xE0 && first < 0xF0  ? 3
                      : first >= 0xF0 && first <= 0xF4 ? 4
                                                       : 0;
  valid = size == 1;
  if (size <= 1) {
    return 1;
  }
  const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    const bool continues =
        i == 1 ? byte(1) >= lowest && byte(1) <= highest : (byte(i) & 0xC0) == 0x80;
    if (!continues) {
      return i;
    }
  }
  valid = true;
  return size;
}

std::string ToUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    bool valid = false;
    const size_t num_bytes = FirstPart(bytes, valid);
    text.append(valid ? bytes.substr(0, num_bytes) : kReplacementCharacter);
    bytes.remove_prefix(num_bytes);
  }
  return text;
}

void DecodeByteLevel(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    if (!AppendBytesOfToken(token, bytes)) {
      bytes.append(token);
    }
  }
  tokens = {ToUtf8(bytes)};
}

void DecodeMetaspace(const DecoderStage& stage, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    ReplaceAll(stage.pattern, i == 0 && stage.drops_first_mark ? "" : " ", tokens[i]);
  }
}

/// Of "<0x0A>"; the reference takes a sign for a digit, too.
std::optional<char> ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) {
    return std::nullopt;
  }
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  return high < 0 || low < 0 ? std::nullopt : std::optional(static_cast<char>(16 * high + low));
}

/// Bytes side by side are one token, if they are UTF-8 together.
void DecodeByteFallback(Tokens& tokens) {
  Tokens decoded;
  std::string bytes;
  const auto settle = [&] {
    if (!bytes.empty() && !unicode::FindInvalidUtf8(bytes).has_value()) {
      decoded.push_back(bytes);
    } else {
      decoded.insert(decoded.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = ByteOfToken(token)) {
      bytes.push_back(*byte);
    } else {
      settle();
      decoded.push_back(std::move(token));
    }
  }
  settle();
  tokens = std::move(decoded);
}

void Fuse(Tokens& tokens) {
  std::string fused;
  for (const std::string& token : tokens) {
    fused += token;
  }
  tokens = {std::move(fused)};
}

void Strip(const DecoderStage& stage, Tokens& tokens) {
  const std::string& mark = stage.pattern;
  for (std::string& token : tokens) {
    std::string_view rest = token;
    size_t num_start = 0;
    while (num_start < stage.strip_start && rest.starts_with(mark)) {
      rest.remove_prefix(mark.size());
      ++num_start;
    }
    for (size_t i = 0; i < stage.strip_stop && rest.ends_with(mark); ++i) {
      rest.remove_suffix(mark.size());
    }
    token = std::string(rest);
  }
}

void DecodeCtc(const DecoderStage& stage, Tokens& tokens) {
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (std::string& token : tokens) {
    if (!stage.pattern.empty()) {
      ReplaceAll(stage.pattern, "", token);
    }
    if (stage.clean_up) {
      CleanUp(true, token);
      ReplaceAll(stage.content, " ", token);
    }
  }
  std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
}

Status ReplaceMatches(const DecoderStage& stage, std::string& token) {
  std::string replaced;
  RETURN_IF_ERROR(ForEachSegment(*stage.regex, token, [&](std::string_view segment, bool is_match) {
    replaced.append(is_match ? std::string_view(stage.content) : segment);
  }));
  token = std::move(replaced);
  return {};
}

Status Replace(const DecoderStage& stage, Tokens& tokens) {
  for (std::string& token : tokens) {
    if (stage.regex) {
      RETURN_IF_ERROR(ReplaceMatches(stage, token));
    } else {
      ReplaceAll(stage.pattern, stage.content, token);
    }
  }
  return {};
}

size_t NumBytes(const Tokens& tokens) {
  size_t num_bytes = 0;
  for (const std::string& token : tokens) {
    num_bytes += token.size();
  }
  return num_bytes;
}

Status RunStage(const DecoderStage& stage, Tokens& tokens) {
  switch (stage.kind) {
    case Kind::kWordPiece: DecodeWordPiece(stage, tokens); break;
    case Kind::kByteLevel: DecodeByteLevel(tokens); break;
    case Kind::kMetaspace: DecodeMetaspace(stage, tokens); break;
    case Kind::kBpe:
      for (size_t i = 0; i < tokens.size(); ++i) {
        ReplaceAll(stage.pattern, i + 1 < tokens.size() ? " " : "", tokens[i]);
      }
      break;
    case Kind::kByteFallback: DecodeByteFallback(tokens); break;
    case Kind::kFuse: Fuse(tokens); break;
    case Kind::kStrip: Strip(stage, tokens); break;
    case Kind::kReplace: return Replace(stage, tokens);
    case Kind::kCtc: DecodeCtc(stage, tokens); break;
  }
  return {};
}

}  // namespace

Result<std::string> Decoder::Decode(std::vector<std::string> tokens) const {
  // Stages that replace may make more of what others made.
  constexpr size_t kGrowth = 64;
  constexpr size_t kFewBytes = 1024;
  const size_t most_bytes = kGrowth * std::max(NumBytes(tokens), kFewBytes);
  for (const DecoderStage& stage : stages_) {
    RETURN_IF_ERROR(RunStage(stage, tokens));
    if (NumBytes(tokens) > most_bytes) {
      return InvalidArgument(
          fmt::format("the tokenizer's decoder makes too much of these tokens: more than {} bytes",
                      most_bytes));
    }
  }
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    text.append(i > 0 ? separator_ : "").append(tokens[i]);
  }
  return text;
}

std::string CleanUpSpaces(std::string text) {
  CleanUp(false, text);
  return text;
}

}  // namespace bouquet::text
