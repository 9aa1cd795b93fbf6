#include "cli/line_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/json.h"

namespace bouquet::cli {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<TextFormat> ParseTextFormat(const std::string& name) {
  if (name == "lines") {
    return TextFormat::kLines;
  }
  if (name == "jsonl") {
    return TextFormat::kJsonl;
  }
  return InvalidArgument(fmt::format("--format must be lines or jsonl: {}", name), "--format");
}

void LineReader::Close::operator()(std::FILE* file) const {
  if (file != stdin) {
    std::fclose(file);
  }
}

Result<LineReader> LineReader::Open(const std::string& path, TextFormat format, std::string field,
                                    std::optional<std::string> second_field) {
  LineReader source;
  source.name_ = path == "-" ? "standard input" : path;
  source.format_ = format;
  source.field_ = std::move(field);
  source.second_field_ = std::move(second_field);
  source.file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (source.file_ == nullptr) {
    return NotFound(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  struct stat info = {};
  if (fstat(fileno(source.file_.get()), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return NotFound(fmt::format("cannot read {}: it is a folder", path));
    }
    source.is_stream_ = !S_ISREG(info.st_mode);
    source.bytes_total_ = source.is_stream_ ? 0 : info.st_size;
  }
  source.buffer_.resize(kBufferBytes);
  return source;
}

std::string LineReader::Where(int64_t line) const { return fmt::format("{}:{}", name_, line); }

Result<bool> LineReader::Refill() {
  // read() and not fread(): a pipe's writer may pause, and what it has sent is wanted now.
  const ssize_t count = read(fileno(file_.get()), buffer_.data(), buffer_.size());
  if (count < 0 && errno == EINTR) {
    return Cancelled("interrupted");
  }
  if (count < 0) {
    return InvalidArgument(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }
  next_ = 0;
  end_ = static_cast<size_t>(count);
  bytes_read_ += count;
  return count > 0;
}

Result<bool> LineReader::ReadLine() {
  current_.clear();
  for (bool anything = false;; anything = true) {
    if (next_ == end_) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) {
        if (!anything) {
          return false;
        }
        break;
      }
    }
    const char* begin = buffer_.data() + next_;
    const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', end_ - next_));
    const size_t count = newline == nullptr ? end_ - next_ : static_cast<size_t>(newline - begin);
    current_.append(begin, count);
    if (current_.size() > kMaxLineBytes) {
      return InvalidArgument(
          fmt::format("{}: line is longer than {} bytes", Where(line_ + 1), kMaxLineBytes));
    }
    next_ += count;
    if (newline != nullptr) {
      ++next_;
      break;
    }
  }
  ++line_;
  if (!current_.empty() && current_.back() == '\r') {
    current_.pop_back();
  }
  if (line_ == 1 && current_.starts_with(kByteOrderMark)) {
    current_.erase(0, kByteOrderMark.size());
  }
  return true;
}

Status LineReader::ReadJsonLine(InputText& input) const {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(current_, Where(line_)));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), Where(line_)));
  ASSIGN_OR_RETURN(input.text, object.RequiredString(field_));
  if (second_field_) {
    ASSIGN_OR_RETURN(input.second, object.RequiredString(*second_field_));
  }
  return {};
}

Status LineReader::CutAtTab(InputText& input) const {
  const size_t tab = input.text.find('\t');
  if (tab == std::string::npos || input.text.find('\t', tab + 1) != std::string::npos) {
    return InvalidArgument(
        fmt::format("{}: a pair is two texts with one tab between them", Where(line_)));
  }
  input.second = input.text.substr(tab + 1);
  input.text.resize(tab);
  return {};
}

Result<std::optional<InputText>> LineReader::Next() {
  ASSIGN_OR_RETURN(const bool found, ReadLine());
  if (!found) {
    return std::optional<InputText>();
  }
  InputText input;
  input.line = line_;
  if (format_ == TextFormat::kJsonl) {
    RETURN_IF_ERROR(ReadJsonLine(input));
  } else {
    input.text = std::move(current_);
    if (second_field_) {
      RETURN_IF_ERROR(CutAtTab(input));
    }
  }
  return std::optional(std::move(input));
}

}  // namespace bouquet::cli
