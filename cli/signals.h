#pragma once

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/log.h"
#include "cli/exit_code.h"

namespace bouquet::cli {

/// SIGTERM and SIGINT end the server, SIGHUP reads files again. Blocked before any thread
/// starts, so that only the thread that waits here gets them.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&set_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  int Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }
  /// From now on the next signal ends the process without waiting for anything.
  void EndAtTheNext() const {
    // A copy: this object may be gone before the thread first runs.
    std::thread([signals = *this] {
      signals.Wait();
      std::_Exit(static_cast<int>(ExitCode::kInterrupted));
    }).detach();
  }
  static const char* NameOf(int signal) { return signal == SIGTERM ? "SIGTERM" : "SIGINT"; }

 private:
  sigset_t set_;
};

}  // namespace bouquet::cli
