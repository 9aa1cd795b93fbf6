#include "rose/backend/cuda/gemm_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

namespace bouquet::rose::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "bouquet-gemm-table 1";
constexpr size_t kFields = 10;  // the eight of a shape, microseconds, the algorithm in hexadecimal
constexpr int64_t kLargestNumber = int64_t{1} << 40;

/// The parts of a line between single separators.
std::vector<std::string_view> Split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string_view::npos; begin = end + 1) {
    end = line.find(separator, begin);
    parts.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return parts;
}

template <class Number>
bool ParseNumber(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseHex(std::string_view text, GemmTable::Algorithm* out) {
  if (text.size() != 2 * out->size()) {
    return false;
  }
  for (size_t i = 0; i < out->size(); ++i) {
    uint8_t value = 0;
    const char* digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) {
      return false;
    }
    (*out)[i] = static_cast<std::byte>(value);
  }
  return true;
}

bool ParseLine(std::string_view line, GemmShape* shape, GemmTable::Entry* entry) {
  const std::vector<std::string_view> fields = Split(line, ' ');
  if (fields.size() != kFields) {
    return false;
  }
  int64_t numbers[8] = {};
  for (size_t i = 0; i < 8; ++i) {
    if (!ParseNumber(fields[i], &numbers[i]) || numbers[i] < 0 || numbers[i] > kLargestNumber) {
      return false;
    }
  }
  *shape = {.rows = numbers[0],
            .out_features = numbers[1],
            .in_features = numbers[2],
            .x_stride = numbers[3],
            .weight_stride = numbers[4],
            .out_stride = numbers[5],
            .has_bias = numbers[6] != 0,
            .adds_residual = numbers[7] != 0};
  return ParseNumber(fields[8], &entry->microseconds) && ParseHex(fields[9], &entry->algorithm);
}

std::string HeadOf(std::string_view device, size_t library_version) {
  return fmt::format("{}\t{}\t{}", kHead, device, library_version);
}

}  // namespace

Status GemmTable::Add(std::string_view text, std::string_view source) {
  std::map<GemmShape, Entry> found;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (number == 1) {
      const std::vector<std::string_view> head = Split(line, '\t');
      if (head.size() != 3 || head[0] != kHead) {
        return InvalidArgument(fmt::format("{} is no table of matrix products", source));
      }
      if (line != HeadOf(device_, library_version_)) {
        return FailedPrecondition(
            fmt::format("{} is of another device or library: {}, cuBLASLt {}; here {}, cuBLASLt {}",
                        source, head[1], head[2], device_, library_version_));
      }
      continue;
    }
    GemmShape shape;
    Entry entry;
    if (line.empty()) {
      continue;
    }
    if (!ParseLine(line, &shape, &entry) || found.size() == kMaxEntries) {
      return InvalidArgument(
          fmt::format("a line of a table of matrix products is not one: {}:{}", source, number));
    }
    found.emplace(shape, entry);
  }
  if (number == 0) {
    return InvalidArgument(fmt::format("{} is empty", source));
  }
  entries_.merge(found);
  return {};
}

std::string GemmTable::Text() const {
  std::string text = HeadOf(device_, library_version_) + "\n";
  for (const auto& [shape, entry] : entries_) {
    text += fmt::format("{} {} {} {} {} {} {} {} {:.2f} ", shape.rows, shape.out_features,
                        shape.in_features, shape.x_stride, shape.weight_stride, shape.out_stride,
                        shape.has_bias ? 1 : 0, shape.adds_residual ? 1 : 0, entry.microseconds);
    for (const std::byte byte : entry.algorithm) {
      text += fmt::format("{:02x}", std::to_integer<int>(byte));
    }
    text += '\n';
  }
  return text;
}

Status GemmTable::ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(fmt::format("there is no {}", path.string()));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return Add(std::move(text).str(), path.string());
}

Status GemmTable::WriteFile(const fs::path& path) const {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path fresh = fs::path(path).concat(".new");
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file << Text();
    if (!file.flush()) {
      return Internal(fmt::format("cannot be written: {}", fresh.string()));
    }
  }
  fs::rename(fresh, path, error);
  return error ? Internal(fmt::format("cannot be written: {}: {}", path.string(), error.message()))
               : Status();
}

const GemmTable::Entry* GemmTable::Find(const GemmShape& shape) const {
  const auto found = entries_.find(shape);
  return found == entries_.end() ? nullptr : &found->second;
}

const GemmTable::Entry* GemmTable::FindSmaller(const GemmShape& shape) const {
  const Entry* best = nullptr;
  int64_t most = -1;
  for (const auto& [other, entry] : entries_) {
    if (other.rows > most && other.rows < shape.rows && other.WithRows(shape.rows) == shape) {
      best = &entry;
      most = other.rows;
    }
  }
  return best;
}

std::optional<fs::path> GemmTablePath(std::string_view device, size_t library_version) {
  fs::path folder;
  if (const char* cache = std::getenv("BOUQUET_CACHE_DIR"); cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base != '\0') {
    folder = fs::path(base) / "bouquet";
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    folder = fs::path(home) / ".cache" / "bouquet";
  } else {
    return std::nullopt;
  }
  std::string name = fmt::format("gemm-{}-cublaslt-{}.txt", device, library_version);
  for (char& c : name) {
    if (c == ' ' || c == '/') {
      c = '-';
    }
  }
  return folder / name;
}

}  // namespace bouquet::rose::cuda
