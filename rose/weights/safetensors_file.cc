#include "rose/weights/safetensors_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bouquet::rose {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::filesystem::path& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

Status CannotRead(const std::filesystem::path& path) {
  return NotFound(fmt::format("cannot read the file that holds weights: {}: {}", path.string(),
                              std::strerror(errno)));
}

}  // namespace

void SafetensorsFile::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

Result<SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  const FileDescriptor file(path);
  struct stat facts = {};
  if (file.number() < 0 || fstat(file.number(), &facts) != 0) {
    return CannotRead(path);
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size == 0) {
    return InvalidArgument(
        fmt::format("{}: not a valid safetensors file: it is empty or no file", path.string()));
  }
  const auto bytes = static_cast<size_t>(facts.st_size);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) {
    return CannotRead(path);
  }
  SafetensorsFile result;
  result.path_ = path;
  result.mapping_ = Mapping(static_cast<std::byte*>(data), Unmap{bytes});
  ASSIGN_OR_RETURN(result.header_,
                   ParseSafetensorsHeader({result.mapping_.get(), bytes}, path.string()));
  return result;
}

const void* SafetensorsFile::Data(const StoredTensor& tensor) {
  const std::byte* data = mapping_.get() + header_.data_offset + tensor.begin;
  const size_t bytes = tensor.end - tensor.begin;
  if (bytes == 0) {
    return data;
  }
  const size_t element_bytes = bytes / static_cast<size_t>(tensor.num_elements);
  if (reinterpret_cast<uintptr_t>(data) % element_bytes == 0) {
    return data;
  }
  copies_.push_back(std::make_unique<std::byte[]>(bytes));
  std::memcpy(copies_.back().get(), data, bytes);
  return copies_.back().get();
}

void SafetensorsFile::ReleasePages() const {
  madvise(mapping_.get(), mapping_.get_deleter().bytes, MADV_DONTNEED);
}

}  // namespace bouquet::rose
