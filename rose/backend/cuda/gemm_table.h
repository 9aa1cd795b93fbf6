#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// Everything that the choice of an algorithm for a matrix product depends on.
struct GemmShape {
  int64_t rows = 0;  // M: tokens
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t x_stride = 0;  // elements from row to row
  int64_t weight_stride = 0;
  int64_t out_stride = 0;
  bool has_bias = false;
  bool adds_residual = false;

  auto operator<=>(const GemmShape&) const = default;  // NOLINT(modernize-use-nullptr)

  /// The same layer with another number of rows.
  GemmShape WithRows(int64_t count) const {
    GemmShape shape = *this;
    shape.rows = count;
    return shape;
  }
};

/// The fastest algorithm of each shape as it was measured on one kind of device with one version of
/// cuBLASLt: the library's own description, opaque, which is good for that version only. Kept in a
/// text file, a head and one line per shape. No CUDA in here.
class GemmTable {
 public:
  static constexpr size_t kAlgorithmBytes = 64;
  using Algorithm = std::array<std::byte, kAlgorithmBytes>;
  struct Entry {
    Algorithm algorithm{};
    double microseconds = 0;  // one product, weights from device memory
  };
  /// Shapes of one file at most.
  static constexpr size_t kMaxEntries = 65'536;

  /// `device`: "NVIDIA H200"; `library_version`: 130100.
  GemmTable(std::string device, size_t library_version)
      : device_(std::move(device)), library_version_(library_version) {}

  /// Adds the entries of a file's text; those already here stay. Error: kFailedPrecondition for a
  /// table of another device or library, kInvalidArgument naming the line for what is no table;
  /// nothing is added then.
  Status Add(std::string_view text, std::string_view source);
  std::string Text() const;

  /// The two for files. Reading: kNotFound when there is none. Writing replaces the file as a
  /// whole, and makes the folder.
  Status ReadFile(const std::filesystem::path& path);
  Status WriteFile(const std::filesystem::path& path) const;

  /// Null when the shape was not measured.
  const Entry* Find(const GemmShape& shape) const;
  /// The measured shape of the same layer with the most rows below `shape.rows`; null without one.
  const Entry* FindSmaller(const GemmShape& shape) const;
  void Set(const GemmShape& shape, const Entry& entry) { entries_[shape] = entry; }

  size_t size() const { return entries_.size(); }

 private:
  std::string device_;
  size_t library_version_;
  std::map<GemmShape, Entry> entries_;
};

/// Where a table that was measured on this machine is kept: BOUQUET_CACHE_DIR, or bouquet/ below
/// XDG_CACHE_HOME or ~/.cache. nullopt without any of them.
std::optional<std::filesystem::path> GemmTablePath(std::string_view device, size_t library_version);

}  // namespace bouquet::rose::cuda
