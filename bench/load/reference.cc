#include "bench/load/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace bouquet::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "npy values are copied as they are");

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kNpyPrefixBytes = 10;  // magic, version, length of the header
constexpr size_t kMaxRows = 10'000'000;

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(fmt::format("cannot read {}", path));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The numbers in "'shape': (3, 384)"; nullopt for anything but two of them.
std::optional<std::pair<size_t, size_t>> ShapeIn(std::string_view header) {
  const size_t at = header.find("'shape': (");
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = header.substr(at + 10);
  rest = rest.substr(0, rest.find(')'));
  size_t rows = 0;
  size_t columns = 0;
  const char* end = rest.data() + rest.size();
  auto [next, error] = std::from_chars(rest.data(), end, rows);
  if (error != std::errc() || end - next < 3 || *next != ',' || next[1] != ' ') {
    return std::nullopt;
  }
  const auto [last, second_error] = std::from_chars(next + 2, end, columns);
  if (second_error != std::errc() || (last != end && std::string_view(last, end) != ",")) {
    return std::nullopt;
  }
  return std::pair(rows, columns);
}

Result<ReferenceRows> ParseNpy(std::string_view content, const std::string& path) {
  if (!content.starts_with(kNpyMagic) || content.size() < kNpyPrefixBytes || content[6] != 1) {
    return InvalidArgument(fmt::format("{}: not a numpy file of format 1", path));
  }
  uint16_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data() + 8, sizeof(header_bytes));
  content.remove_prefix(kNpyPrefixBytes);
  if (content.size() < header_bytes) {
    return InvalidArgument(fmt::format("{}: the header is cut off", path));
  }
  const std::string_view header = content.substr(0, header_bytes);
  content.remove_prefix(header_bytes);
  const auto shape = ShapeIn(header);
  if (!shape || header.find("'descr': '<f4'") == std::string_view::npos ||
      header.find("'fortran_order': False") == std::string_view::npos) {
    return InvalidArgument(
        fmt::format("{}: must be float32 in C order with two dimensions: {}", path, header));
  }
  const auto [rows, columns] = *shape;
  if (rows == 0 || columns == 0 || rows > kMaxRows ||
      content.size() / sizeof(float) / columns != rows ||
      content.size() != rows * columns * sizeof(float)) {
    return InvalidArgument(fmt::format("{}: {} bytes of values do not make {} x {} float32", path,
                                       content.size(), rows, columns));
  }
  ReferenceRows reference;
  reference.dimensions = columns;
  reference.values.resize(rows * columns);
  std::memcpy(reference.values.data(), content.data(), content.size());
  return reference;
}

Status AppendLine(std::string_view line, const std::string& where, ReferenceRows& reference) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(line, where));
  simdjson::dom::array vector;
  if (document.root()["embedding"].get_array().get(vector) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: has no array \"embedding\"", where));
  }
  size_t count = 0;
  for (const simdjson::dom::element item : vector) {
    double value = 0;
    if (item.get_double().get(value) != simdjson::SUCCESS ||
        std::abs(value) > std::numeric_limits<float>::max()) {
      return InvalidArgument(fmt::format("{}: value {} is no float32", where, count));
    }
    reference.values.push_back(static_cast<float>(value));
    ++count;
  }
  if (reference.dimensions == 0) {
    reference.dimensions = count;
  }
  if (count == 0 || count != reference.dimensions) {
    return InvalidArgument(
        fmt::format("{}: {} values, the first line has {}", where, count, reference.dimensions));
  }
  return {};
}

Result<ReferenceRows> ParseJsonl(std::string_view content, const std::string& path) {
  ReferenceRows reference;
  for (size_t number = 1; !content.empty(); ++number) {
    const size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (!line.empty()) {
      RETURN_IF_ERROR(AppendLine(line, fmt::format("{}:{}", path, number), reference));
    }
  }
  if (reference.num_rows() == 0) {
    return InvalidArgument(fmt::format("{}: holds no vector", path));
  }
  return reference;
}

}  // namespace

Result<ReferenceRows> ReadReference(const std::string& path) {
  if (!path.ends_with(".npy") && !path.ends_with(".jsonl")) {
    return InvalidArgument(fmt::format("a reference must end in .npy or .jsonl: {}", path));
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return path.ends_with(".npy") ? ParseNpy(content, path) : ParseJsonl(content, path);
}

double CosineDistance(std::span<const float> a, std::span<const float> b) {
  double dot = 0;
  double a_squares = 0;
  double b_squares = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    dot += double{a[i]} * double{b[i]};
    a_squares += double{a[i]} * double{a[i]};
    b_squares += double{b[i]} * double{b[i]};
  }
  const double distance = 1 - dot / std::sqrt(a_squares * b_squares);
  return a.size() == b.size() && std::isfinite(distance) ? distance
                                                         : std::numeric_limits<double>::infinity();
}

}  // namespace bouquet::bench
