#include "cli/embed_job.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <charconv>

namespace bouquet::cli {
namespace {

namespace asio = boost::asio;

/// "input[3]" -> 3; the encoder names the text of a group this way.
std::optional<size_t> IndexIn(const std::string& field) {
  const size_t open = field.find('[');
  size_t index = 0;
  if (open == std::string::npos ||
      std::from_chars(field.data() + open + 1, field.data() + field.size(), index).ec !=
          std::errc()) {
    return std::nullopt;
  }
  return index;
}

}  // namespace

EmbedJob::EmbedJob(ivy::Encoder& encoder, LineReader& source, RowWriter& writer,
                   EmbedJobOptions options, Progress& progress)
    : encoder_(encoder),
      source_(source),
      writer_(writer),
      options_(std::move(options)),
      progress_(progress) {}

asio::awaitable<EmbedJob::Outcome> EmbedJob::Run() {
  // g++ 12 wants awaited values in named variables.
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer front_changed(executor, asio::steady_timer::time_point::max());
  front_changed_ = &front_changed;
  Outcome outcome;
  while (!input_ended_ || !under_way_.empty()) {
    while (!input_ended_ && under_way_.size() < kGroupsUnderWay) {
      std::vector<ivy::EncodeInput> texts;
      Result<std::shared_ptr<Group>> group = ReadGroup(texts);
      if (!group.ok()) {
        outcome = {ExitCode::kInput, group.status()};
        input_ended_ = true;
        break;
      }
      if (texts.empty()) {
        break;
      }
      under_way_.push_back(*group);
      asio::co_spawn(executor, Encode(*group, std::move(texts)), asio::detached);
    }
    // Groups that were read before an error was found are waited for, but their rows are not
    // written.
    while (!under_way_.empty() && (under_way_.size() >= kGroupsUnderWay || input_ended_ ||
                                   under_way_.front()->rows.has_value())) {
      co_await WaitForFront();
      if (outcome.code == ExitCode::kOk) {
        outcome = WriteFront();
        input_ended_ = input_ended_ || outcome.code != ExitCode::kOk;
      }
      under_way_.pop_front();
    }
  }
  front_changed_ = nullptr;
  co_return outcome;
}

Result<std::shared_ptr<EmbedJob::Group>> EmbedJob::ReadGroup(std::vector<ivy::EncodeInput>& texts) {
  auto group = std::make_shared<Group>();
  size_t bytes = 0;
  while (texts.size() < kGroupTexts && bytes < kGroupBytes) {
    ASSIGN_OR_RETURN(std::optional<InputText> next, source_.Next());
    if (!next) {
      input_ended_ = true;
      break;
    }
    bytes += next->text.size();
    group->lines.push_back(next->line);
    texts.emplace_back(std::move(next->text));
  }
  return group;
}

asio::awaitable<void> EmbedJob::Encode(std::shared_ptr<Group> group,
                                       std::vector<ivy::EncodeInput> texts) {
  ivy::EncodeRequest request;
  request.inputs = std::move(texts);
  request.output = options_.output;
  request.over_length = options_.over_length;
  request.prompt = options_.prompt;
  request.parse_special = options_.parse_special;
  request.traffic_class = model::TrafficClass::kBulk;
  Result<ivy::EncodedRows> rows = co_await encoder_.Encode(std::move(request));
  group->rows.emplace(std::move(rows));
  if (front_changed_ != nullptr) {
    front_changed_->cancel();
  }
}

asio::awaitable<void> EmbedJob::WaitForFront() {
  while (!under_way_.front()->rows.has_value()) {
    co_await front_changed_->async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

EmbedJob::Outcome EmbedJob::WriteFront() {
  const Group& group = *under_way_.front();
  const Result<ivy::EncodedRows>& rows = *group.rows;
  if (!rows.ok()) {
    return InputError(group, rows.status());
  }
  for (size_t i = 0; i < group.lines.size(); ++i) {
    if (!rows->statuses[i].ok()) {
      return InputError(group, Status(rows->statuses[i].code(), rows->statuses[i].message(),
                                      fmt::format("input[{}]", i)));
    }
    const std::span<const float> row(rows->values.data() + i * rows->dimensions, rows->dimensions);
    if (const Status status = writer_.Write(row, rows->truncated[i] != 0); !status.ok()) {
      return {ExitCode::kOutput, status};
    }
    truncated_ += rows->truncated[i];
  }
  progress_.Add(static_cast<int64_t>(group.lines.size()), rows->total_tokens());
  progress_.Draw(source_.bytes_total() > 0 ? static_cast<double>(source_.bytes_read()) /
                                                 static_cast<double>(source_.bytes_total())
                                           : -1);
  return {};
}

EmbedJob::Outcome EmbedJob::InputError(const Group& group, const Status& status) const {
  const std::optional<size_t> index = IndexIn(status.field());
  const bool of_the_input =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kOutOfRange;
  if (!index || *index >= group.lines.size()) {
    return {of_the_input ? ExitCode::kInput : ExitCode::kInternal, status};
  }
  return {of_the_input ? ExitCode::kInput : ExitCode::kInternal,
          Status(status.code(),
                 fmt::format("{}: {}", source_.Where(group.lines[*index]), status.message()))};
}

}  // namespace bouquet::cli
