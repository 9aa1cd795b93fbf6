#include "model/config_file.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxExactDigits = 18;  // every such integer fits into int64

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string WidenHugeIntegers(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    if (c == '"') {
      in_string = !in_string;
    }
    if (in_string || !IsDigit(c)) {
      out.push_back(c);
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsDigit(text[end])) {
      ++end;
    }
    const bool is_integer =
        end == text.size() || (text[end] != '.' && text[end] != 'e' && text[end] != 'E');
    const bool follows_fraction = i > 0 && (text[i - 1] == '.' || text[i - 1] == 'e' ||
                                            text[i - 1] == 'E' || text[i - 1] == '+');
    out.append(text.substr(i, end - i));
    if (is_integer && !follows_fraction && end - i > kMaxExactDigits) {
      out.append("e0");
    }
    i = end;
  }
  return out;
}

Result<std::string> ReadConfigBytes(const fs::path& path, std::string_view purpose) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return NotFound(fmt::format("file is missing; it holds {}: {}", purpose, path.string()));
  }
  const uintmax_t size = fs::file_size(path, error);
  if (error) {
    return NotFound(fmt::format("cannot read the file that holds {}: {}: {}", purpose,
                                path.string(), error.message()));
  }
  if (size > kMaxConfigBytes) {
    return InvalidArgument(fmt::format("configuration file is too large: {}: {} bytes, limit {}",
                                       path.string(), size, kMaxConfigBytes));
  }
  std::string bytes(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return NotFound(fmt::format("cannot read the file that holds {}: {}", purpose, path.string()));
  }
  return bytes;
}

Result<JsonDocument> ReadConfigFile(const fs::path& path, std::string_view purpose) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadConfigBytes(path, purpose));
  return JsonDocument::Parse(WidenHugeIntegers(bytes), path.string());
}

Result<std::optional<JsonDocument>> ReadOptionalConfigFile(const fs::path& path,
                                                           std::string_view purpose) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return std::optional<JsonDocument>();
  }
  ASSIGN_OR_RETURN(JsonDocument document, ReadConfigFile(path, purpose));
  return std::optional<JsonDocument>(std::move(document));
}

}  // namespace bouquet::model
