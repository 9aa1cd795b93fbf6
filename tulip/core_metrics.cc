#include "tulip/core_metrics.h"

#include <vector>

namespace bouquet::tulip {
namespace {

std::vector<double> PowersOfTwo(double largest) {
  std::vector<double> buckets;
  for (double bound = 1; bound <= largest; bound *= 2) {
    buckets.push_back(bound);
  }
  return buckets;
}

std::vector<double> Tenths() { return {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}; }

constexpr const char* kStepsName = "bouquet_steps_total";
constexpr const char* kStepsHelp =
    "Steps by how they were launched: replay and capture of a whole graph, or eagerly, op by op";
constexpr const char* kRejectedName = "bouquet_rejected_chunks_total";
constexpr const char* kRejectedHelp = "Chunks that the queue did not admit";
constexpr const char* kAnsweredName = "bouquet_answered_sequences_total";
constexpr const char* kAnsweredHelp = "Sequences answered, by outcome";
constexpr const char* kCancelledName = "bouquet_cancelled_sequences_total";
constexpr const char* kCancelledHelp = "Sequences whose answer was no longer wanted, by stage";
constexpr const char* kExpiredName = "bouquet_expired_sequences_total";
constexpr const char* kExpiredHelp = "Sequences whose deadline passed, by stage";

}  // namespace

CoreMetrics::CoreMetrics(Metrics& m, const std::string& model)
    : queue_sequences(m.AddGauge("bouquet_queue_sequences", "Sequences that wait for a step",
                                 {{"model", model}})),
      queue_tokens(
          m.AddGauge("bouquet_queue_tokens", "Tokens that wait for a step", {{"model", model}})),
      step_tokens(m.AddHistogram("bouquet_step_tokens", "Tokens in a step", PowersOfTwo(65536),
                                 {{"model", model}})),
      step_sequences(m.AddHistogram("bouquet_step_sequences", "Sequences in a step",
                                    PowersOfTwo(4096), {{"model", model}})),
      step_fill_ratio(m.AddHistogram("bouquet_step_fill_ratio",
                                     "Tokens in a step over --step-tokens", Tenths(),
                                     {{"model", model}})),
      step_seconds(m.AddHistogram("bouquet_step_seconds", "How long a step took",
                                  Metrics::DurationBuckets(), {{"model", model}})),
      queue_seconds(m.AddHistogram("bouquet_queue_seconds",
                                   "How long a sequence waited for its step",
                                   Metrics::DurationBuckets(), {{"model", model}})),
      failed_steps(m.AddCounter("bouquet_failed_steps_total", "Steps that failed as a whole",
                                {{"model", model}})),
      replayed_steps(m.AddCounter(kStepsName, kStepsHelp, {{"model", model}, {"how", "replay"}})),
      captured_steps(m.AddCounter(kStepsName, kStepsHelp, {{"model", model}, {"how", "capture"}})),
      eager_steps(m.AddCounter(kStepsName, kStepsHelp, {{"model", model}, {"how", "eager"}})),
      evicted_graphs(m.AddCounter("bouquet_evicted_graphs_total",
                                  "Captured graphs that were given up for others",
                                  {{"model", model}})),
      padding_tokens(m.AddCounter(
          "bouquet_padding_tokens_total",
          "Tokens that steps computed over those that bouquet_step_tokens counts, for padding",
          {{"model", model}})),
      rejected_full(
          m.AddCounter(kRejectedName, kRejectedHelp, {{"model", model}, {"reason", "full"}})),
      rejected_invalid(
          m.AddCounter(kRejectedName, kRejectedHelp, {{"model", model}, {"reason", "invalid"}})),
      rejected_expired(
          m.AddCounter(kRejectedName, kRejectedHelp, {{"model", model}, {"reason", "expired"}})),
      rejected_stopping(
          m.AddCounter(kRejectedName, kRejectedHelp, {{"model", model}, {"reason", "stopping"}})),
      answered_ok(
          m.AddCounter(kAnsweredName, kAnsweredHelp, {{"model", model}, {"outcome", "ok"}})),
      answered_not_finite(m.AddCounter(kAnsweredName, kAnsweredHelp,
                                       {{"model", model}, {"outcome", "not_finite"}})),
      answered_failed(
          m.AddCounter(kAnsweredName, kAnsweredHelp, {{"model", model}, {"outcome", "failed"}})),
      abandoned(
          m.AddCounter(kAnsweredName, kAnsweredHelp, {{"model", model}, {"outcome", "abandoned"}})),
      cancelled_in_queue(
          m.AddCounter(kCancelledName, kCancelledHelp, {{"model", model}, {"stage", "queue"}})),
      cancelled_in_step(
          m.AddCounter(kCancelledName, kCancelledHelp, {{"model", model}, {"stage", "step"}})),
      expired_in_queue(
          m.AddCounter(kExpiredName, kExpiredHelp, {{"model", model}, {"stage", "queue"}})),
      expired_in_step(
          m.AddCounter(kExpiredName, kExpiredHelp, {{"model", model}, {"stage", "step"}})),
      spared_tokens(m.AddCounter("bouquet_spared_tokens_total",
                                 "Tokens that were cancelled or expired before they were computed",
                                 {{"model", model}})) {}

}  // namespace bouquet::tulip
