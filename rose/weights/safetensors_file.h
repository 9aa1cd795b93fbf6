#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/status.h"
#include "rose/weights/safetensors_header.h"

namespace bouquet::rose {

/// A safetensors file mapped into memory, read-only: pages are read when they are touched.
/// Move-only.
class SafetensorsFile {
 public:
  /// Error: kNotFound when the file cannot be opened; kInvalidArgument when it is damaged.
  static Result<SafetensorsFile> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

  /// The tensor's bytes, aligned for its dtype: a copy is made, and kept, where the file does not
  /// align them. Valid as long as this. Thread: one at a time.
  const void* Data(const StoredTensor& tensor);

  /// Gives the pages read so far back to the system. They are read again when they are touched.
  void ReleasePages() const;

 private:
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* data) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;

  std::filesystem::path path_;
  Mapping mapping_;
  SafetensorsHeader header_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
};

}  // namespace bouquet::rose
