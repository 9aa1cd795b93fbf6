#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "ivy/handlers/served_model.h"

namespace bouquet::ivy::testing {

/// Stands in for tokenizer and engine: the value j of row i is (i + 1) × 0.125 + j × 0.5, and an
/// input has as many tokens as bytes or ids. Each byte of a text is a token, whose id is the byte;
/// in front there is the special token 0, "<s>". Thread: any.
class FakeEncoder {
 public:
  explicit FakeEncoder(uint32_t width) : width_(width) {}

  EncodeFunction Function();
  TextFunction ReadsTexts();

  /// Applied to every answer before it is given.
  void ChangeRows(std::function<void(EncodedRows&)> change);
  /// What is answered instead of rows; OK ends that.
  void FailWith(Status status);
  /// Requests wait until they are released, cancelled or late.
  void Hold() { held_ = true; }
  void Release() { held_ = false; }

  int64_t num_requests() const { return num_requests_; }
  int64_t num_waiting() const { return num_waiting_; }
  int64_t num_cancelled() const { return num_cancelled_; }
  /// The last request; its inputs too.
  EncodeRequest last_request() const;
  TextRequest last_text_request() const;

 private:
  boost::asio::awaitable<Result<EncodedRows>> Encode(EncodeRequest request);
  boost::asio::awaitable<Status> Wait(const EncodeRequest& request);
  Result<EncodedRows> Rows(const EncodeRequest& request) const;
  boost::asio::awaitable<Result<std::vector<TextAnswer>>> ReadTexts(TextRequest request);

  const uint32_t width_;
  std::atomic<bool> held_ = false;
  std::atomic<int64_t> num_requests_ = 0;
  std::atomic<int64_t> num_waiting_ = 0;
  std::atomic<int64_t> num_cancelled_ = 0;
  mutable std::mutex mutex_;
  std::function<void(EncodedRows&)> change_;
  Status failure_;
  EncodeRequest last_;
  TextRequest last_text_;
};

/// A model of `width` dimensions with the prompts "query" and "passage" and inputs of at most
/// `max_input_tokens`.
ServedModel FakeModel(FakeEncoder& encoder, int32_t width, int32_t max_input_tokens = 256);

}  // namespace bouquet::ivy::testing
