#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load/inputs.h"
#include "bench/load/row_plan.h"
#include "bench/load/tally.h"
#include "client/embed_client.h"

namespace bouquet::bench {

struct MeasurePlan {
  client::ClientOptions target;
  InputSource inputs;
  std::vector<RowPlan> rows;
  int32_t rounds = 3;
  std::chrono::nanoseconds warm_up{0};  // before the first round of each row; not counted
  int64_t warm_up_requests = 0;         // or fewer; 0: no such limit
};

struct MeasureProgress {
  std::string_view row;
  int32_t round = 0;  // 0: warm-up
  int32_t rounds = 0;
  int64_t num_answered = 0;  // in this round
};

struct MeasureHooks {
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const MeasureProgress&)> on_progress;  // may be empty
};

/// A row as measured.
struct RowResult {
  RowPlan plan;
  std::vector<Tally> rounds;
  bool complete = true;  // every round was, to its end
};

/// Runs the rows one after the other, each in client processes of its own. Interrupted, it gives
/// what there is; the last row is then incomplete. Error: kUnavailable and so on when a warm-up
/// gets no good answer at all, with what the server said; what RunClientProcesses reports.
Result<std::vector<RowResult>> MeasureRows(const MeasurePlan& plan, const MeasureHooks& hooks);

}  // namespace bouquet::bench
