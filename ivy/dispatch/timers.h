#pragma once

#include <memory>

#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"

namespace bouquet::ivy {

class Resumption;

/// Ends waits when their moment has come. A dependency beside Clock, so that a simulation, where
/// time does not pass by itself, decides when that is. Thread: any.
class Timers {
 public:
  virtual ~Timers() = default;

  /// Resumes `waiting` at `at`, unless `timer` has ended before. `timer` lies in the frame of the
  /// coroutine that waits: so a wait allocates nothing, and leaves nothing behind.
  virtual void ResumeAt(TimePoint at, std::shared_ptr<Resumption> waiting,
                        boost::asio::steady_timer& timer) const = 0;
};

/// Time as it passes.
class AsioTimers final : public Timers {
 public:
  void ResumeAt(TimePoint at, std::shared_ptr<Resumption> waiting,
                boost::asio::steady_timer& timer) const override;
};

inline const AsioTimers kAsioTimers;

}  // namespace bouquet::ivy
