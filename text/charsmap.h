#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bouquet::text {

/// SentencePiece's compiled normalization rules, "precompiled_charsmap": strings and what replaces
/// them. The blob is little-endian: the size of a double array in bytes, the array of 32-bit units
/// (Darts' format), then the replacements, UTF-8 with a NUL behind each. Immutable. Thread: any.
class Charsmap {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  /// Error: kInvalidArgument for a blob that is cut off, not of this format, or whose array points
  /// outside itself or into the middle of a replacement's character.
  static Result<Charsmap> Parse(std::string_view blob);

  /// Overwrites `out` with `text` (valid UTF-8) as the reference normalizes it: a grapheme cluster
  /// of fewer than 6 bytes that begins with a string of the rules is replaced whole, by what
  /// replaces the shortest such string; else the same for each character of the cluster.
  /// `sources` is a SourceMap or NoSources (source_map.h), told what the reference makes of it: it
  /// counts replaced characters rather than follow them, so that what a removed first character
  /// leaves behind lags.
  template <class Sources>
  void Normalize(std::string_view text, Sources sources, std::string& out) const;

 private:
  template <class Writer>
  void NormalizeTo(std::string_view text, Writer& writer) const;
  Status Check() const;
  std::optional<std::string_view> Find(std::string_view chunk) const;
  template <class Writer>
  void WriteCluster(std::string_view cluster, Writer& writer) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> keeps_ascii_{};  // the character by itself stays as it is
};

/// The bytes that base64 (RFC 4648, with padding) stands for, or nullopt.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace bouquet::text
