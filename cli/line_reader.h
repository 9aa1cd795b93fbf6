#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"

namespace bouquet::cli {

enum class TextFormat : uint8_t {
  kLines,  // one text a line; "\n" or "\r\n" ends it, and is not part of it
  kJsonl,  // one JSON object a line; the text is its string member `field`
};

/// "lines" or "jsonl". Error: kInvalidArgument.
Result<TextFormat> ParseTextFormat(const std::string& name);

struct InputText {
  std::string text;
  std::string second;  // of a pair
  int64_t line = 0;    // counted from 1
};

/// Reads texts from a file or standard input, one at a time. A byte order mark before the first
/// line is skipped.
class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  /// `path` "-" is standard input. With `second_field` each line holds a pair: a tab between the
  /// texts, or two members of the object. Error: kNotFound with the system's reason.
  static Result<LineReader> Open(const std::string& path, TextFormat format, std::string field,
                                 std::optional<std::string> second_field = std::nullopt);

  /// nullopt at the end. Error: kInvalidArgument "FILE:LINE: …"; kCancelled when a signal came
  /// while it waited for input.
  Result<std::optional<InputText>> Next();

  /// Bytes read so far, and in all (0 when not known): for progress.
  int64_t bytes_read() const { return bytes_read_; }
  int64_t bytes_total() const { return bytes_total_; }
  /// True when Next would have to wait for whoever writes into the pipe: a moment to flush what is
  /// ready.
  bool WouldWait() const { return next_ == end_ && is_stream_; }
  /// "FILE:LINE" of the text returned last.
  std::string Where(int64_t line) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };

  LineReader() = default;
  Result<bool> ReadLine();
  Result<bool> Refill();
  Status ReadJsonLine(InputText& input) const;
  Status CutAtTab(InputText& input) const;

  std::string name_;
  TextFormat format_ = TextFormat::kLines;
  std::string field_;
  std::optional<std::string> second_field_;
  std::unique_ptr<std::FILE, Close> file_;
  bool is_stream_ = false;
  std::string buffer_;
  size_t next_ = 0;
  size_t end_ = 0;
  std::string current_;
  int64_t line_ = 0;
  int64_t bytes_read_ = 0;
  int64_t bytes_total_ = 0;
};

}  // namespace bouquet::cli
