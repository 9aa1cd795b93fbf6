#include "text/charsmap.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/source_map.h"
#include "text/unicode/grapheme.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

constexpr size_t kMaxReplacementBytes = 256;  // published maps have 33 at most
constexpr size_t kMaxWholeCluster = 5;        // bytes; longer ones go character by character

// A unit of Darts' array: bits 0..7 label, 8 whether a value hangs below, 9 whether the offset
// counts in 256, 10..31 offset; the unit of a value has bit 31 and the value in the rest.
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 1U << 9) >> 6); }

uint32_t LoadLittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

Status Corrupt(std::string_view what) {
  return InvalidArgument(fmt::format("\"precompiled_charsmap\" is corrupt: {}", what),
                         "precompiled_charsmap");
}

}  // namespace

Result<Charsmap> Charsmap::Parse(std::string_view blob) {
  if (blob.size() > kMaxBytes) {
    return Corrupt(fmt::format("{} bytes, limit {}", blob.size(), kMaxBytes));
  }
  if (blob.size() < 4) {
    return Corrupt(fmt::format("{} bytes, too short for a header", blob.size()));
  }
  const uint32_t array_bytes = LoadLittleEndian(blob);
  blob.remove_prefix(4);
  if (array_bytes < 4 || array_bytes > blob.size()) {
    return Corrupt(
        fmt::format("its array should have {} bytes, {} bytes follow", array_bytes, blob.size()));
  }
  Charsmap map;
  map.units_.resize(array_bytes / 4);
  for (uint32_t& unit : map.units_) {
    unit = LoadLittleEndian(blob);
    blob.remove_prefix(4);
  }
  if (const std::optional<size_t> invalid = unicode::FindInvalidUtf8(blob)) {
    return Corrupt(fmt::format("replacements are not UTF-8 at byte {}", *invalid));
  }
  map.replacements_ = blob;
  RETURN_IF_ERROR(map.Check());
  for (size_t c = 0; c < map.keeps_ascii_.size(); ++c) {
    const char text = static_cast<char>(c);
    map.keeps_ascii_[c] = !map.Find({&text, 1}).has_value();
  }
  return map;
}

/// That Find stays inside, wherever it gets to from the root.
Status Charsmap::Check() const {
  std::vector<bool> seen(units_.size());
  std::vector<uint32_t> open = {Offset(units_[0])};
  while (!open.empty()) {
    const uint32_t position = open.back();
    open.pop_back();
    // Children lie at position ^ label, so the last is position | 255 at most.
    if ((uint64_t{position} | 0xFF) >= units_.size()) {
      return Corrupt(fmt::format("a node has children at {}, but the array has {} units", position,
                                 units_.size()));
    }
    if (seen[position]) {
      continue;
    }
    seen[position] = true;
    for (uint32_t label = 1; label < 256; ++label) {
      const uint32_t child = position ^ label;
      const uint32_t unit = units_[child];
      if (Label(unit) != label) {
        continue;
      }
      const uint32_t below = child ^ Offset(unit);
      if (HasValue(unit)) {
        if (below >= units_.size()) {
          return Corrupt(
              fmt::format("a value at {}, but the array has {} units", below, units_.size()));
        }
        const uint32_t value = Value(units_[below]);
        const bool in_character = value < replacements_.size() &&
                                  (static_cast<unsigned char>(replacements_[value]) & 0xC0) == 0x80;
        if (value > replacements_.size() || in_character) {
          return Corrupt(
              fmt::format("a replacement at byte {} of {}", value, replacements_.size()));
        }
        const std::string_view from = std::string_view(replacements_).substr(value);
        if (from.substr(0, kMaxReplacementBytes + 1).find('\0') == std::string_view::npos &&
            from.size() > kMaxReplacementBytes) {
          return Corrupt(fmt::format("a replacement at byte {} is longer than {} bytes", value,
                                     kMaxReplacementBytes));
        }
      }
      open.push_back(below);
    }
  }
  return {};
}

/// What replaces the shortest string of the rules that `chunk` begins with.
std::optional<std::string_view> Charsmap::Find(std::string_view chunk) const {
  uint32_t position = Offset(units_[0]);
  for (const char c : chunk) {
    const uint32_t label = static_cast<unsigned char>(c);
    if (label == 0) {
      break;
    }
    position ^= label;
    const uint32_t unit = units_[position];
    if (Label(unit) != label) {
      break;
    }
    position ^= Offset(unit);
    if (HasValue(unit)) {
      const std::string_view from = std::string_view(replacements_).substr(Value(units_[position]));
      return from.substr(0, from.find('\0'));
    }
  }
  return std::nullopt;
}

template <class Replace>
void Charsmap::ReplaceCluster(std::string_view cluster, Replace replace) const {
  if (cluster.size() <= kMaxWholeCluster) {
    if (const std::optional<std::string_view> replacement = Find(cluster)) {
      replace(cluster, *replacement);
      return;
    }
  }
  while (!cluster.empty()) {
    const std::string_view character = cluster.substr(0, unicode::Decode(cluster).num_bytes);
    replace(character, Find(character).value_or(character));
    cluster.remove_prefix(character.size());
  }
}

template <class Sources>
void Charsmap::Normalize(std::string_view text, std::vector<int32_t>& claims, Sources sources,
                         std::string& out) const {
  const std::string_view input = text;
  out.clear();
  claims.clear();
  // Of what replaces more characters the last ones claim nothing; of what replaces fewer the last
  // claims the rest. What nothing replaces is claimed by what was written last, if anything was.
  const auto replace = [&](std::string_view from, std::string_view to) {
    out.append(to);
    if constexpr (Sources::kTracks) {
      const size_t num_old = unicode::CountCodePoints(from);
      const size_t num_new = unicode::CountCodePoints(to);
      claims.insert(claims.end(), std::min(num_old, num_new), 1);
      claims.insert(claims.end(), num_new - std::min(num_old, num_new), 0);
      if (num_old > num_new && !claims.empty()) {
        claims.back() += static_cast<int32_t>(num_old - num_new);
      }
    }
  };
  while (!text.empty()) {
    // An ASCII character is a cluster unless something that is not ASCII follows, or it is \r.
    size_t plain = 0;
    while (plain < text.size() && static_cast<unsigned char>(text[plain]) < 0x80 &&
           keeps_ascii_[static_cast<unsigned char>(text[plain])] && text[plain] != '\r') {
      ++plain;
    }
    if (plain > 0 && plain < text.size() && static_cast<unsigned char>(text[plain]) >= 0x80) {
      --plain;
    }
    replace(text.substr(0, plain), text.substr(0, plain));
    text.remove_prefix(plain);
    if (!text.empty()) {
      const size_t num_bytes = unicode::FirstGraphemeCluster(text);
      ReplaceCluster(text.substr(0, num_bytes), replace);
      text.remove_prefix(num_bytes);
    }
  }
  if constexpr (Sources::kTracks) {
    ServeClaims(input, claims, out, sources);
  }
}

template void Charsmap::Normalize(std::string_view, std::vector<int32_t>&, NoSources,
                                  std::string&) const;
template void Charsmap::Normalize(std::string_view, std::vector<int32_t>&, SourceMap,
                                  std::string&) const;

std::optional<std::string> DecodeBase64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const size_t num_padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(num_padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes.push_back(static_cast<char>(bits >> num_bits & 0xFF));
    }
  }
  // The bits that padding leaves over must be 0.
  if ((bits & ((1U << num_bits) - 1)) != 0) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace bouquet::text
