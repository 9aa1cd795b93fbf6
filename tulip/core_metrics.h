#pragma once

#include <string>

#include "base/metrics.h"

namespace bouquet::tulip {

/// The series of one core, all registered here with the label `model`. Updated by the serving loop
/// and the completer, once per step or per answered sequence.
struct CoreMetrics {
  CoreMetrics(Metrics& metrics, const std::string& model);

  Gauge& queue_sequences;
  Gauge& queue_tokens;

  Histogram& step_tokens;
  Histogram& step_sequences;
  Histogram& step_fill_ratio;  // tokens ÷ step target
  Histogram& step_seconds;
  Histogram& queue_seconds;  // per sequence
  Counter& failed_steps;

  Counter& replayed_steps;
  Counter& captured_steps;
  Counter& eager_steps;  // every step of a device that captures none
  Counter& evicted_graphs;
  Counter& padding_tokens;

  Counter& rejected_full;      // chunks
  Counter& rejected_invalid;   // chunks
  Counter& rejected_expired;   // chunks
  Counter& rejected_stopping;  // chunks

  Counter& answered_ok;  // sequences
  Counter& answered_not_finite;
  Counter& answered_failed;
  Counter& abandoned;  // answered "stopping" instead of computed
  Counter& cancelled_in_queue;
  Counter& cancelled_in_step;
  Counter& expired_in_queue;
  Counter& expired_in_step;
  Counter& spared_tokens;  // cancelled or expired before they were computed
};

}  // namespace bouquet::tulip
