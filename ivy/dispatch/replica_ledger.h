#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ivy/dispatch/probe_schedule.h"
#include "ivy/dispatch/replica.h"

namespace bouquet::ivy {

/// What is known here of a replica behind a network, and what follows from it: whether it gets
/// work, how much it has to do, when it is asked next, what an error of it means. Fed by whoever
/// speaks to the replica, with what was sent and what came back. No network, clock, thread or lock:
/// the owner guards it.
class ReplicaLedger {
 public:
  /// What a probe has found.
  struct ProbeAnswer {
    enum class State : uint8_t {
      kServing,
      kNotServing,  // loads or drains: what it has taken it will answer
      kStalled,     // does not come forward
      kLost,        // gave no answer
    };
    State state = State::kLost;
    std::string reason;              // unless it serves
    ReplicaDescription description;  // these if it serves
    int64_t queued_tokens = 0;
    double tokens_per_second = 0;
  };

  /// How a call ended that brought no rows.
  struct CallError {
    Status status;
    bool from_replica = false;   // the replica's own word, not the network's
    bool cancelled = false;      // its answer is no longer wanted
    bool within_limits = false;  // when it was sent, the replica said that it admits such inputs
    int64_t num_tokens = 0;      // sent with it
  };

  /// `name` is for messages.
  ReplicaLedger(std::string name, const ProbeSchedule::Options& probe);

  const std::optional<ReplicaDescription>& description() const { return description_; }
  ReplicaLoad Load() const;

  // Calls. Each names the model it is meant for, because another one may be there by now.

  /// May something be sent, should the caller have nobody else? Error: kUnavailable when the
  /// replica was refused: it would compute another model's rows.
  Status CheckAdmitted() const;
  /// Of the model that was admitted; empty before.
  std::string_view identity() const;
  bool Admits(int32_t longest_input) const {
    return description_ && longest_input <= description_->max_input_tokens;
  }
  /// What the replica said when its queue was full, as long as that must still hold: nothing of
  /// ours has been answered since, and this is no smaller than what it refused. It would refuse
  /// again, at the price of a call.
  Status CheckRoom(int64_t num_tokens) const;
  void NoteSent(int64_t num_tokens) { own_tokens_ += num_tokens; }
  /// A call has ended, with what the replica said of its queue if it said anything.
  void NoteEnded(int64_t num_tokens, std::optional<int64_t> queued_tokens);
  /// The error for the caller. Where it says that the replica is lost, stops or has been replaced,
  /// that is kUnavailable, and nothing more is sent until the next probe, which then comes at once.
  Status NoteError(CallError error);

  // Probes, one at a time: BeginProbe, then NoteProbe, then a wait of UntilNextProbe.

  void BeginProbe() { probe_now_ = false; }
  /// Has this replica not been seen before, or is it another one than last time? Then NoteProbe
  /// needs a verdict.
  bool IsNew(const ReplicaDescription& description) const { return description_ != description; }
  /// `verdict`: may a replica that IsNew serve here? Returns what becomes of the calls under way:
  /// true when they will not be answered and should be ended.
  bool NoteProbe(ProbeAnswer answer, std::optional<Status> verdict);
  /// `jitter` in [0, 1): see ProbeSchedule.
  std::chrono::milliseconds UntilNextProbe(double jitter);
  /// True when the next probe should not wait any longer.
  bool probe_now() const { return probe_now_; }

  /// Nothing more is sent, and what is lost from here on is not worth a line in the log.
  void Retire();

 private:
  void NoteFull(const Status& refusal, int64_t num_tokens);
  void NoteServing(ProbeAnswer answer, std::optional<Status> verdict);
  void NoteUnusable(const std::string& reason);
  void NoteQueue(int64_t reported_tokens);
  static bool WasReplaced(const CallError& error);
  void StopSending(const std::string& reason);

  const std::string name_;
  ProbeSchedule schedule_;

  std::optional<ReplicaDescription> description_;  // the last one that served
  Status verdict_;                                 // on that one
  ReplicaLoad load_;                               // queued_tokens: of others
  int64_t own_tokens_ = 0;
  Status full_;              // the last refusal for lack of room, until something moves; else OK
  int64_t full_tokens_ = 0;  // the smallest that was refused since
  bool usable_ = false;      // so the last probe found it
  bool asked_ = false;       // once: so that the log says why the first probe found nothing
  bool probe_now_ = false;
  bool retired_ = false;
};

}  // namespace bouquet::ivy
