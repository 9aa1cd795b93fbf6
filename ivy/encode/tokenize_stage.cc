#include "ivy/encode/tokenize_stage.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace bouquet::ivy {
namespace {

constexpr size_t kNumLanes = 2;

size_t LaneOf(model::TrafficClass traffic_class) {
  return traffic_class == model::TrafficClass::kInteractive ? 0 : 1;
}

// One per thread, whatever stage it works for: a scratch belongs to no tokenizer.
text::EncodeScratch& ThreadScratch() {
  thread_local text::EncodeScratch scratch;
  return scratch;
}

}  // namespace

TokenizeStage::TokenizeStage(const TokenizeOptions& options, Metrics& metrics,
                             const std::string& model, const Clock& clock)
    : options_(options),
      clock_(clock),
      waiting_requests_(metrics.AddGauge("bouquet_tokenize_waiting_requests",
                                         "Requests handed to the text workers and not done",
                                         {{"model", model}})),
      rejected_(metrics.AddCounter("bouquet_tokenize_rejected_requests_total",
                                   "Requests refused because too many wait for a text worker",
                                   {{"model", model}})),
      cancelled_(metrics.AddCounter("bouquet_cancelled_sequences_total",
                                    "Sequences whose answer was no longer wanted, by stage",
                                    {{"model", model}, {"stage", "tokenize"}})),
      expired_(metrics.AddCounter("bouquet_expired_sequences_total",
                                  "Sequences whose deadline passed, by stage",
                                  {{"model", model}, {"stage", "tokenize"}})),
      queue_(options.max_waiting_requests, kNumLanes) {
  for (int32_t i = 0; i < options.num_threads; ++i) {
    workers_.emplace_back([this] { Work(); });
  }
}

TokenizeStage::~TokenizeStage() {
  queue_.Close();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

boost::asio::awaitable<Result<TokenizedInputs>> TokenizeStage::Run(EncodeRequest& request,
                                                                   const TextSource& source,
                                                                   const TokenizeLimits& limits) {
  const TimePoint start = clock_.Now();
  auto job = std::make_shared<TokenizeJob>(request, limits, source, clock_);
  CO_RETURN_IF_ERROR(job->CheckInputs());
  CO_RETURN_IF_ERROR(co_await Run(job));
  TokenizedInputs result;
  result.sequences = std::move(job->sequences());
  result.tokenize_us = std::chrono::duration_cast<Microseconds>(clock_.Now() - start).count();
  co_return result;
}

boost::asio::awaitable<Status> TokenizeStage::Run(std::shared_ptr<SlicedJob> job) {
  job->Cut(options_.slice_bytes);
  if (RunsInline(*job)) {
    for (size_t slice = 0; job->ClaimSlice(slice);) {
      job->RunSlice(slice, ThreadScratch());
    }
  } else {
    waiting_requests_.Increment();
    const bool pushed = queue_.TryPush(Job(job), LaneOf(job->terms().traffic_class));
    if (pushed) {
      // Not bounded by the deadline: the workers read the request until the last slice has ended,
      // and they look at the deadline themselves before each input.
      co_await Resumption::Wait(job, Deadline::None());
    }
    waiting_requests_.Decrement();
    if (!pushed) {
      rejected_.Increment();
      co_return ResourceExhausted(fmt::format("too many requests wait to be tokenized: limit {}",
                                              options_.max_waiting_requests))
          .WithRetryAfter(1);
    }
  }
  Count(*job);
  co_return job->error();
}

bool TokenizeStage::RunsInline(const SlicedJob& job) const {
  return options_.num_threads == 0 || job.num_bytes() <= options_.inline_bytes;
}

void TokenizeStage::Work() {
  while (std::optional<Job> job = queue_.Pop()) {
    size_t slice = 0;
    if (!(*job)->ClaimSlice(slice)) {
      continue;
    }
    if (slice + 1 < (*job)->num_slices()) {
      queue_.PutBack(*job,
                     LaneOf((*job)->terms().traffic_class));  // other workers, and other requests,
                                                              // have their turn
    }
    if ((*job)->RunSlice(slice, ThreadScratch())) {
      (*job)->Resume();
    }
  }
}

void TokenizeStage::Count(const SlicedJob& job) {
  const auto num_inputs = static_cast<double>(job.num_inputs());
  if (job.error().code() == StatusCode::kCancelled) {
    cancelled_.Increment(num_inputs);
  } else if (job.error().code() == StatusCode::kDeadlineExceeded) {
    expired_.Increment(num_inputs);
  }
}

}  // namespace bouquet::ivy
