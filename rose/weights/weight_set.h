#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rose/tensor/tensor.h"
#include "rose/weights/safetensors_file.h"

namespace bouquet::rose {

/// The named tensors of one or several safetensors files, taken one by one with the shape that the
/// network expects, so that what is missing, of another shape or left over is found. The
/// HostTensors point into the mapped files: keep this alive as long as they are used. Move-only.
class WeightSet {
 public:
  /// Error: as SafetensorsFile::Open; kInvalidArgument for a name that two files hold.
  static Result<WeightSet> Open(const std::vector<std::filesystem::path>& paths);

  bool Has(std::string_view stored_name) const;
  /// Put in front of every name that is taken from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  /// [rows, cols] of float32, float16 or bfloat16. Error: kNotFound for a missing tensor,
  /// kInvalidArgument for another shape or dtype: names tensor, file, expected and found.
  Result<HostTensor> TakeMatrix(const std::string& name, int64_t rows, int64_t cols);
  /// A tensor of shape [size], as [1, size].
  Result<HostTensor> TakeVector(const std::string& name, int64_t size);

  /// Error: kInvalidArgument naming a tensor, and its file, that was not taken and that
  /// `is_harmless` (given the name without prefix) does not excuse.
  Status CheckNothingLeft(const std::function<bool(std::string_view)>& is_harmless) const;

  /// Number of elements taken so far from tensors whose name without prefix `is_member` accepts.
  int64_t CountTaken(const std::function<bool(std::string_view)>& is_member) const;

  /// Bytes taken so far, as stored.
  int64_t TakenBytes() const;

  /// Every file, for messages.
  std::string FileNames() const;
  /// Gives the files' pages back to the system; what is read again comes from the files again.
  /// Taking tensors does it now and then.
  void ReleasePages() const;

 private:
  struct Location {
    size_t file = 0;
    size_t tensor = 0;
    bool taken = false;
  };

  Result<HostTensor> Take(const std::string& name, std::span<const int64_t> shape);
  const StoredTensor& Stored(const Location& location) const {
    return files_[location.file].header().tensors[location.tensor];
  }
  std::string_view WithoutPrefix(std::string_view stored_name) const;

  std::vector<SafetensorsFile> files_;
  std::map<std::string, Location, std::less<>> by_name_;
  std::string prefix_;
  uint64_t bytes_since_release_ = 0;
};

}  // namespace bouquet::rose
