#include "ivy/handlers/embed_metrics.h"

#include <algorithm>
#include <string_view>

namespace bouquet::ivy {
namespace {

constexpr std::array<std::string_view, 5> kStages = {"parse", "tokenize", "queue", "step",
                                                     "render"};

double Seconds(int64_t microseconds) { return static_cast<double>(microseconds) * 1e-6; }

}  // namespace

EmbedMetrics::EmbedMetrics(Metrics& metrics, const std::string& model) {
  const MetricLabels labels = {{"model", model}};
  inputs_ = &metrics.AddCounter("bouquet_inputs_total", "Inputs of answered requests", labels);
  tokens_ = &metrics.AddCounter("bouquet_tokens_total",
                                "Tokens of answered requests, special tokens included", labels);
  truncated_ =
      &metrics.AddCounter("bouquet_truncated_inputs_total", "Inputs that were cut", labels);
  failed_items_ = &metrics.AddCounter(
      "bouquet_failed_inputs_total", "Inputs that failed alone, in a request that did not", labels);
  for (size_t i = 0; i < kStages.size(); ++i) {
    stage_seconds_[i] = &metrics.AddHistogram(
        "bouquet_request_stage_seconds", "Where the time of answered requests went",
        Metrics::DurationBuckets(), {{"model", model}, {"stage", std::string(kStages[i])}});
  }
}

void EmbedMetrics::CountAnswer(const EncodedRows& rows, const RequestTimings& timings) {
  inputs_->Increment(static_cast<double>(rows.token_counts.size()));
  tokens_->Increment(static_cast<double>(rows.total_tokens()));
  const auto cut = std::count_if(rows.truncated.begin(), rows.truncated.end(),
                                 [](uint8_t truncated) { return truncated != 0; });
  const auto failed = std::count_if(rows.statuses.begin(), rows.statuses.end(),
                                    [](const Status& status) { return !status.ok(); });
  truncated_->Increment(static_cast<double>(cut));
  failed_items_->Increment(static_cast<double>(failed));
  const std::array<int64_t, 5> stages = {timings.parse_us, timings.encode.tokenize_us,
                                         timings.encode.queue_us, timings.encode.step_us,
                                         timings.render_us};
  for (size_t i = 0; i < stages.size(); ++i) {
    stage_seconds_[i]->Observe(Seconds(stages[i]));
  }
}

}  // namespace bouquet::ivy
