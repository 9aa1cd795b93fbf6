#include "ivy/dispatch/timers.h"

#include <utility>

#include "ivy/dispatch/resumption.h"

namespace bouquet::ivy {

void AsioTimers::ResumeAt(TimePoint at, std::shared_ptr<Resumption> waiting,
                          boost::asio::steady_timer& timer) const {
  timer.expires_at(at);
  timer.async_wait([waiting = std::move(waiting)](const boost::system::error_code& error) {
    if (!error) {
      waiting->Resume();
    }
  });
}

}  // namespace bouquet::ivy
