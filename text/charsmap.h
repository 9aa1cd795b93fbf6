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
  /// Sources: SourceMap, for which `claims` is scratch, or NoSources.
  template <class Sources>
  void Normalize(std::string_view text, std::vector<int32_t>& claims, Sources sources,
                 std::string& out) const;

 private:
  Status Check() const;
  std::optional<std::string_view> Find(std::string_view chunk) const;
  /// Calls `replace(old, new)` for the parts of a cluster.
  template <class Replace>
  void ReplaceCluster(std::string_view cluster, Replace replace) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> keeps_ascii_{};  // the character by itself stays as it is
};

/// The bytes that base64 (RFC 4648, with padding) stands for, or nullopt.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace bouquet::text
