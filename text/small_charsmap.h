#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bouquet::text {

/// Compiles rules (string → replacement, neither empty nor with a NUL; few and short) into the blob
/// that Charsmap::Parse reads, for tests and fuzz targets.
class SmallCharsmap {
 public:
  explicit SmallCharsmap(const std::map<std::string, std::string>& rules) : units_(512) {
    for (const auto& [key, replacement] : rules) {
      values_.push_back(static_cast<uint32_t>(replacements_.size()));
      keys_.push_back(key);
      replacements_ += replacement;
      replacements_ += '\0';
    }
    taken_.assign(units_.size(), false);
    taken_[0] = true;
    Place(0, "");
  }

  std::string blob() const {
    std::string bytes = Word(static_cast<uint32_t>(4 * units_.size()));
    for (const uint32_t unit : units_) {
      bytes += Word(unit);
    }
    return bytes + replacements_;
  }

 private:
  static std::string Word(uint32_t value) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) {
      bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    }
    return bytes;
  }

  /// Places what hangs below the node at `position`, whose strings begin with `prefix`.
  void Place(uint32_t position, const std::string& prefix) {
    std::vector<uint32_t> labels;
    for (const std::string& key : keys_) {
      if (key == prefix && !prefix.empty()) {
        labels.push_back(0);
      } else if (key.size() > prefix.size() && key.starts_with(prefix)) {
        const uint32_t label = static_cast<unsigned char>(key[prefix.size()]);
        if (labels.empty() || labels.back() != label) {
          labels.push_back(label);
        }
      }
    }
    uint32_t base = 1;
    // Nodes with one base would take each other's children for their own.
    while (bases_.contains(base) || !Fits(base, labels)) {
      ++base;
    }
    bases_.insert(base);
    units_[position] |= (position ^ base) << 10;
    for (const uint32_t label : labels) {
      taken_[base ^ label] = true;
      units_[base ^ label] = label;
    }
    for (const uint32_t label : labels) {
      if (label == 0) {
        units_[position] |= 1U << 8;
        units_[base] = 1U << 31 | ValueOf(prefix);
      } else {
        Place(base ^ label, prefix + static_cast<char>(label));
      }
    }
  }

  bool Fits(uint32_t base, const std::vector<uint32_t>& labels) {
    if ((base | 0xFF) >= units_.size()) {
      units_.resize(units_.size() + 256);
      taken_.resize(units_.size(), false);
    }
    for (const uint32_t label : labels) {
      if (taken_[base ^ label]) {
        return false;
      }
    }
    return true;
  }

  uint32_t ValueOf(const std::string& key) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == key) {
        return values_[i];
      }
    }
    return 0;
  }

  std::vector<std::string> keys_;  // in order
  std::vector<uint32_t> values_;
  std::vector<uint32_t> units_;
  std::vector<bool> taken_;
  std::set<uint32_t> bases_;
  std::string replacements_;
};

/// What base64 (RFC 4648) makes of it: the form in tokenizer.json.
inline std::string Base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 3; ++k) {
      bits = bits << 8 | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 0x3F] : '=';
    }
  }
  return text;
}

/// A few rules of each kind: one character, several, one that is the beginning of another, several
/// code points, spaces, removal.
inline std::string SmallCharsmapBlob() {
  return SmallCharsmap({{"A", "a"},
                        {"\t", " "},
                        {"\r", " "},
                        {"\u3000", " "},
                        {"\u200d", ""},
                        {"\x01", ""},
                        {"\uFB01", "fi"},
                        {"\u00A9", "(c)"},
                        {"k", "K"},
                        {"kj", "never"},
                        {"e\u0301", "\u00E9"},
                        {"\uFF76\uFF9E", "\u30AC"}})
      .blob();
}

}  // namespace bouquet::text
