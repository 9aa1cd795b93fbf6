#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/status.h"
#include "cli/exit_code.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/row_writer.h"
#include "ivy/encode/encoder.h"

namespace bouquet::cli {

struct EmbedJobOptions {
  model::OutputSpec output;
  text::OverLength over_length = text::OverLength::kTruncate;
  std::string prompt;
  bool parse_special = true;
};

/// Reads texts, embeds them and writes rows, all three at once: a bounded number of groups of texts
/// is under way while the next ones are read and the finished ones are written, in order. Runs on
/// one executor; the engine has threads of its own.
class EmbedJob {
 public:
  static constexpr size_t kGroupTexts = 32;         // texts of one Encode call
  static constexpr size_t kGroupBytes = 64 * 1024;  // or fewer, when they are long
  static constexpr size_t kGroupsUnderWay =
      16;  // bounds memory, and is plenty to keep the engine busy

  EmbedJob(ivy::Encoder& encoder, LineReader& source, RowWriter& writer, EmbedJobOptions options,
           Progress& progress);

  struct Outcome {
    ExitCode code = ExitCode::kOk;
    Status status;
  };
  /// Until the input ends or something fails. Does not finish the writer.
  boost::asio::awaitable<Outcome> Run();

  int64_t truncated() const { return truncated_; }

 private:
  struct Group {
    std::vector<int64_t> lines;  // of each text in the input
    std::optional<Result<ivy::EncodedRows>> rows;
  };

  Result<std::shared_ptr<Group>> ReadGroup(std::vector<ivy::EncodeInput>& texts);
  boost::asio::awaitable<void> Encode(std::shared_ptr<Group> group,
                                      std::vector<ivy::EncodeInput> texts);
  boost::asio::awaitable<void> WaitForFront();
  Outcome WriteFront();
  Outcome InputError(const Group& group, const Status& status) const;

  ivy::Encoder& encoder_;
  LineReader& source_;
  RowWriter& writer_;
  EmbedJobOptions options_;
  Progress& progress_;
  std::deque<std::shared_ptr<Group>> under_way_;        // shared with the coroutine that fills it
  boost::asio::steady_timer* front_changed_ = nullptr;  // lives in Run
  bool input_ended_ = false;
  int64_t truncated_ = 0;
};

}  // namespace bouquet::cli
