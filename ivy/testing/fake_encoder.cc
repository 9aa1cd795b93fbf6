#include "ivy/testing/fake_encoder.h"

#include <chrono>
#include <utility>
#include <variant>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace bouquet::ivy::testing {

namespace asio = boost::asio;

EncodeFunction FakeEncoder::Function() {
  return [this](EncodeRequest request) { return Encode(std::move(request)); };
}

TextFunction FakeEncoder::ReadsTexts() {
  return [this](TextRequest request) { return ReadTexts(std::move(request)); };
}

void FakeEncoder::ChangeRows(std::function<void(EncodedRows&)> change) {
  const std::lock_guard lock(mutex_);
  change_ = std::move(change);
}

void FakeEncoder::FailWith(Status status) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(status);
}

EncodeRequest FakeEncoder::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

TextRequest FakeEncoder::last_text_request() const {
  const std::lock_guard lock(mutex_);
  return last_text_;
}

asio::awaitable<Result<EncodedRows>> FakeEncoder::Encode(EncodeRequest request) {
  ++num_requests_;
  {
    const std::lock_guard lock(mutex_);
    last_ = request;
  }
  if (held_) {
    ++num_waiting_;
    Status status = co_await Wait(request);
    --num_waiting_;
    if (!status.ok()) {
      co_return status;
    }
  }
  co_return Rows(request);
}

asio::awaitable<Status> FakeEncoder::Wait(const EncodeRequest& request) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (held_) {
    if (request.cancelled.stop_requested()) {
      ++num_cancelled_;
      co_return Cancelled("the client hung up");
    }
    if (request.deadline.HasPassed(SystemClock().Now())) {
      co_return DeadlineExceeded("the deadline passed in the queue");
    }
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
  co_return Status();
}

Result<EncodedRows> FakeEncoder::Rows(const EncodeRequest& request) const {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) {
    return failure_;
  }
  EncodedRows rows;
  rows.dimensions = request.output.dimensions == 0 ? width_ : request.output.dimensions;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    for (uint32_t j = 0; j < rows.dimensions; ++j) {
      rows.values.push_back(0.125F * static_cast<float>(i + 1) + 0.5F * static_cast<float>(j));
    }
    const size_t length =
        std::visit([](const auto& input) { return input.size(); }, request.inputs[i]);
    rows.token_counts.push_back(static_cast<int32_t>(length));
    rows.truncated.push_back(0);
  }
  rows.statuses.resize(request.inputs.size());
  rows.timings = {.tokenize_us = 1500, .queue_us = 2500, .step_us = 3500};
  if (change_) {
    change_(rows);
  }
  return rows;
}

namespace {

TextAnswer TokensOf(const TextRequest& request, const std::string& text) {
  TextAnswer answer;
  answer.text = request.prompt + text;
  if (request.add_special_tokens) {
    answer.tokens.ids = {0};
    answer.tokens.spans = {{}};
    answer.tokens.special_mask = {1};
    answer.pieces = {"<s>"};
  }
  for (uint32_t i = 0; i < answer.text.size(); ++i) {
    answer.tokens.ids.push_back(static_cast<uint8_t>(answer.text[i]));
    answer.tokens.spans.push_back({i, i + 1});
    answer.tokens.special_mask.push_back(0);
    answer.pieces.emplace_back(1, answer.text[i]);
  }
  return answer;
}

}  // namespace

asio::awaitable<Result<std::vector<TextAnswer>>> FakeEncoder::ReadTexts(TextRequest request) {
  const std::lock_guard lock(mutex_);
  last_text_ = request;
  if (!failure_.ok()) {
    co_return failure_;
  }
  std::vector<TextAnswer> answers;
  for (const EncodeInput& input : request.inputs) {
    if (const auto* text = std::get_if<std::string>(&input)) {
      answers.push_back(TokensOf(request, *text));
      continue;
    }
    TextAnswer answer;
    for (const int32_t id : std::get<std::vector<int32_t>>(input)) {
      answer.text += id == 0 ? (request.skip_special_tokens ? "" : "<s>")
                             : std::string(1, static_cast<char>(id));
    }
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

ServedModel FakeModel(FakeEncoder& encoder, int32_t width, int32_t max_input_tokens) {
  ServedModel served;
  served.name = "fake-model";
  served.aliases = {"fake-alias"};
  served.folder.pipeline.width = width;
  served.folder.pipeline.ends_normalized = true;
  served.folder.pipeline.modules = {model::PoolingModule{.modes = {model::PoolingMode::kMean}}};
  served.folder.max_input_tokens = max_input_tokens;
  served.folder.prompts.by_name = {{"query", "query: "}, {"passage", "passage: "}};
  served.encode = encoder.Function();
  served.read_texts = encoder.ReadsTexts();
  return served;
}

}  // namespace bouquet::ivy::testing
