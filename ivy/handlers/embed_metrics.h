#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/metrics.h"
#include "ivy/encode/encode_request.h"

namespace bouquet::ivy {

/// Where the time of an answered request went, in microseconds.
struct RequestTimings {
  int64_t parse_us = 0;
  int64_t render_us = 0;
  int64_t total_us = 0;  // from the last byte read to the answer rendered
  EncodeTimings encode;
};

/// What a model's embed routes have done. Registered at start. Thread: any.
class EmbedMetrics {
 public:
  EmbedMetrics(Metrics& metrics, const std::string& model);

  void CountAnswer(const EncodedRows& rows, const RequestTimings& timings);

 private:
  Counter* inputs_;
  Counter* tokens_;
  Counter* truncated_;
  Counter* failed_items_;
  std::array<Histogram*, 5> stage_seconds_{};  // parse, tokenize, queue, step, render
};

}  // namespace bouquet::ivy
