#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/dispatch/replica.h"
#include "model/output_spec.h"
#include "model/traffic_class.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy {

/// One input of a request: a text, or token ids to be used verbatim.
using EncodeInput = std::variant<std::string, std::vector<int32_t>>;

/// How the message of a kInvalidArgument for an empty input begins: dialects tell it from others.
inline constexpr std::string_view kEmptyInputMessage = "input must not be empty";

/// What a handler asks of the encoder. Knows no dialect and no HTTP.
struct EncodeRequest {
  std::vector<EncodeInput> inputs;
  /// Path of an input in the body, for errors: `input[3]`, or `input` alone when it was no list.
  std::string field = "input";
  bool field_is_list = true;

  model::OutputSpec output;
  text::OverLength over_length = text::OverLength::kError;
  text::TruncationSide truncation_side = text::TruncationSide::kRight;
  std::optional<int32_t> max_tokens;  // the request's own limit; the model's applies as well
  std::string prompt;  // resolved text, put before each text input; ids never get one
  bool parse_special = true;

  model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
  Deadline deadline;
  std::string request_id;  // for logs and traces of the replica
  TraceContext trace;
  /// Stopped when the answer is no longer wanted; the encoder stops it when the request fails.
  std::stop_source cancelled;
};

/// Where the time of a request went, in microseconds. Queue and step are means over the request's
/// sequences.
struct EncodeTimings {
  int64_t tokenize_us = 0;
  int64_t queue_us = 0;
  int64_t step_us = 0;
};

/// Rows in input order.
struct EncodedRows {
  uint32_t dimensions = 0;
  std::vector<float> values;  // [num_inputs, dimensions]
  std::vector<int32_t>
      token_counts;  // [num_inputs] tokens computed, special tokens and prompt included
  std::vector<uint8_t> truncated;  // [num_inputs] 0 or 1
  std::vector<Status>
      statuses;  // [num_inputs]; an item that failed (kInternal for a non-finite row) has no row
  EncodeTimings timings;

  int64_t total_tokens() const {
    int64_t total = 0;
    for (const int32_t count : token_counts) {
      total += count;
    }
    return total;
  }
};

}  // namespace bouquet::ivy
