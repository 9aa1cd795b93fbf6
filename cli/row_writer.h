#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace bouquet::cli {

/// Writes one vector after another, in the form that the output's name asks for: F.npy (a float32
/// array [rows, dimensions], numpy format 1.0), F.jsonl ({"index", "embedding", "truncated"?} a
/// line) or "-" (the same lines to standard output). Files are written beside their name with
/// ".part" added, and renamed by Finish: a file of that name is always complete.
class RowWriter {
 public:
  /// Error: kInvalidArgument for another ending; kPermissionDenied with the system's reason.
  static Result<std::unique_ptr<RowWriter>> Open(const std::string& path);
  /// Without Finish the part file is removed.
  virtual ~RowWriter();
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  /// Every row has the same number of values. Error: kPermissionDenied with the system's reason
  /// (disk full and so on).
  virtual Status Write(std::span<const float> row, bool truncated) = 0;
  Status Finish();
  int64_t rows() const { return rows_; }

 protected:
  RowWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  virtual Status WriteEnd() = 0;
  Status WriteBytes(const void* data, size_t size);
  bool to_standard_output() const { return path_ == "-"; }

  std::string path_;
  std::FILE* file_;
  int64_t rows_ = 0;
};

}  // namespace bouquet::cli
