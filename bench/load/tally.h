#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/load/histogram.h"

namespace bouquet::bench {

/// What came of one request.
struct Sample {
  std::chrono::nanoseconds intended{0};  // when it should have been sent, from the round's start
  std::chrono::nanoseconds lag{0};       // how much later it was sent
  std::chrono::nanoseconds latency{0};   // from `intended` to the last byte of the answer
  std::string outcome = "ok";            // client::OutcomeName
  bool has_retry_after = false;
  bool reconnected = false;
  int64_t num_inputs = 0;
  int64_t num_tokens = 0;
};

/// Requests of one failure.
struct OutcomeTally {
  int64_t count = 0;
  int64_t with_retry_after = 0;
  Histogram latency;
};

/// Requests that were due within one stretch of kWindow.
struct Window {
  static constexpr int kPrecisionBits = 7;  // 0.8 %, in 19 KB: there are many windows

  int64_t ok = 0;
  int64_t failed = 0;
  Histogram latency{kPrecisionBits};  // of the ok ones
};

/// All that one round measured. Parts of several processes are merged.
struct Tally {
  static constexpr std::chrono::milliseconds kWindow{250};
  static constexpr size_t kMaxWindows = 4'800;  // 20 minutes; later requests count in the last one

  Histogram latency;  // of the ok ones
  Histogram lag;      // of all
  std::map<std::string, OutcomeTally> failed;
  std::vector<Window> windows;  // open loops only
  int64_t num_inputs = 0;       // of the ok ones
  int64_t num_tokens = 0;
  int64_t num_reconnected = 0;
  std::string first_error;
  std::chrono::nanoseconds elapsed{0};  // from the round's start to its last answer
  bool complete = true;                 // not interrupted

  void Record(const Sample& sample, bool with_windows);
  /// `elapsed` becomes the longer one: the parts ran at the same time.
  void Merge(const Tally& other);

  int64_t num_ok() const { return latency.count(); }
  int64_t num_failed() const;
  /// Counts a request that was due and could not even be queued.
  void RecordUnsent() { ++failed["unsent"].count; }
  double SecondsElapsed() const { return std::chrono::duration<double>(elapsed).count(); }
};

/// A line of JSON, for the pipe between processes.
std::string WriteTally(const Tally& tally);
/// Error: kInvalidArgument for anything that WriteTally does not write.
Result<Tally> ReadTally(std::string_view json);

}  // namespace bouquet::bench
