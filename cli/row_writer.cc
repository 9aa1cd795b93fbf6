#include "cli/row_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/json.h"

namespace bouquet::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the npy header below says little-endian");

constexpr size_t kNpyHeaderBytes = 128;

std::string PartPath(const std::string& path) { return path + ".part"; }

Status SystemError(const std::string& what) {
  return Status(StatusCode::kPermissionDenied, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// Format 1.0: magic, version, header length, a Python dictionary padded with spaces to a fixed
/// size, so that the number of rows can be put in at the end. Source: numpy's documentation, "npy
/// format".
std::string NpyHeader(int64_t rows, int64_t dimensions) {
  std::string header("\x93NUMPY\x01\x00", 8);
  const uint16_t length = kNpyHeaderBytes - 10;
  header.append(reinterpret_cast<const char*>(&length), sizeof(length));
  header += fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows,
                        dimensions);
  header.resize(kNpyHeaderBytes - 1, ' ');
  header += '\n';
  return header;
}

class NpyWriter final : public RowWriter {
 public:
  NpyWriter(std::string path, std::FILE* file) : RowWriter(std::move(path), file) {}

  Status Write(std::span<const float> row, bool /*truncated*/) override {
    if (rows_++ == 0) {
      dimensions_ = static_cast<int64_t>(row.size());
      const std::string header = NpyHeader(0, dimensions_);
      RETURN_IF_ERROR(WriteBytes(header.data(), header.size()));
    }
    CHECK_EQ(static_cast<int64_t>(row.size()), dimensions_);
    return WriteBytes(row.data(), row.size_bytes());
  }

 protected:
  Status WriteEnd() override {
    if (std::fseek(file_, 0, SEEK_SET) != 0) {
      return SystemError("cannot write " + PartPath(path_));
    }
    const std::string header = NpyHeader(rows_, dimensions_);
    return WriteBytes(header.data(), header.size());
  }

 private:
  int64_t dimensions_ = 0;
};

class JsonlWriter final : public RowWriter {
 public:
  JsonlWriter(std::string path, std::FILE* file) : RowWriter(std::move(path), file) {}

  Status Write(std::span<const float> row, bool truncated) override {
    line_ = fmt::format("{{\"index\":{},\"embedding\":[", rows_++);
    for (const float value : row) {
      AppendJsonFloat(value, line_);
      line_ += ',';
    }
    line_.back() = ']';
    line_ += truncated ? ",\"truncated\":true}\n" : "}\n";
    return WriteBytes(line_.data(), line_.size());
  }

 protected:
  Status WriteEnd() override { return {}; }

 private:
  std::string line_;
};

}  // namespace

Result<std::unique_ptr<RowWriter>> RowWriter::Open(const std::string& path) {
  const bool npy = path.ends_with(".npy");
  if (path != "-" && !npy && !path.ends_with(".jsonl")) {
    return InvalidArgument(fmt::format("--output must end in .npy or .jsonl, or be -: {}", path),
                           "--output");
  }
  std::FILE* file = path == "-" ? stdout : std::fopen(PartPath(path).c_str(), "wb");
  if (file == nullptr) {
    return SystemError("cannot write " + PartPath(path));
  }
  if (npy) {
    return std::unique_ptr<RowWriter>(std::make_unique<NpyWriter>(path, file));
  }
  return std::unique_ptr<RowWriter>(std::make_unique<JsonlWriter>(path, file));
}

RowWriter::~RowWriter() {
  if (file_ != nullptr && !to_standard_output()) {
    std::fclose(file_);
    unlink(PartPath(path_).c_str());
  }
}

Status RowWriter::WriteBytes(const void* data, size_t size) {
  if (std::fwrite(data, 1, size, file_) != size) {
    return SystemError(to_standard_output() ? "cannot write to standard output"
                                            : "cannot write " + PartPath(path_));
  }
  return {};
}

Status RowWriter::Finish() {
  RETURN_IF_ERROR(WriteEnd());
  if (std::fflush(file_) != 0) {
    return SystemError("cannot write " + (to_standard_output() ? std::string("to standard output")
                                                               : PartPath(path_)));
  }
  if (to_standard_output()) {
    return {};
  }
  // Closed before it is renamed, and its result looked at: some file systems report a full disk
  // only here.
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!closed || std::rename(PartPath(path_).c_str(), path_.c_str()) != 0) {
    const Status status = SystemError("cannot write " + path_);
    unlink(PartPath(path_).c_str());
    return status;
  }
  return {};
}

}  // namespace bouquet::cli
