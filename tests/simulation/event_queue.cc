#include "tests/simulation/event_queue.h"

#include <algorithm>
#include <utility>

#include "ivy/dispatch/resumption.h"

namespace bouquet::simulation {

void EventQueue::At(TimePoint at, std::function<void()> event) {
  heap_.push_back({std::max(at, now_), next_number_++, std::move(event)});
  std::push_heap(heap_.begin(), heap_.end(), IsLater);
}

bool EventQueue::RunNext(TimePoint end) {
  if (heap_.empty() || heap_.front().at > end) {
    now_ = std::max(now_, end);
    return false;
  }
  std::pop_heap(heap_.begin(), heap_.end(), IsLater);
  const Event event = std::move(heap_.back());
  heap_.pop_back();
  now_ = event.at;
  event.run();
  return true;
}

void VirtualTimers::ResumeAt(TimePoint at, std::shared_ptr<ivy::Resumption> waiting,
                             boost::asio::steady_timer& /*timer*/) const {
  // What has been resumed before is gone, or is not resumed twice.
  events_.At(at, [waiting = std::weak_ptr(waiting)] {
    if (const std::shared_ptr<ivy::Resumption> still_there = waiting.lock()) {
      still_there->Resume();
    }
  });
}

}  // namespace bouquet::simulation
