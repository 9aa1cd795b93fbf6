#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace bouquet::bench {

/// A client process's way to its parent.
class ParentChannel {
 public:
  /// A stream socket, which stays the caller's.
  explicit ParentChannel(int socket) : socket_(socket) {}

  /// Says that all is prepared, and waits until every process is. False: the parent gave up.
  bool WaitForStart();
  void ReportProgress(int64_t num_answered);
  /// The last word. A newline in the message becomes a space.
  void ReportResult(const Result<std::string>& result);

 private:
  void WriteLine(std::string line);
  int socket_;
};

/// Runs in a process of its own, part `index`, and returns one line of text. It may start threads
/// and event loops. Ends soon after a SIGINT.
using ClientWork = std::function<Result<std::string>(size_t index, ParentChannel& parent)>;

struct ClientProcessHooks {
  /// Set by a signal handler: the processes get a SIGINT, and their results are waited for a
  /// little.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called a few times a second with what all processes together have answered. May be empty.
  std::function<void(int64_t num_answered)> on_progress;
};

/// Forks `count` processes, runs `work` in each and gives back what they returned, in order. The
/// caller must have no other thread: a fork copies only the one that calls it. Error: the first
/// one that a process returned; kInternal naming the process that ended without a result;
/// kCancelled when it was interrupted before the start. The others are then killed.
Result<std::vector<std::string>> RunClientProcesses(size_t count, const ClientWork& work,
                                                    const ClientProcessHooks& hooks);

}  // namespace bouquet::bench
