#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "ivy/http/server_state.h"

namespace bouquet::ivy::http {

/// Serves a socket until it is closed: reads a request, has it answered, writes the answer, again.
/// Runs on the worker's thread only. `worker` and `state` must outlive it.
boost::asio::awaitable<void> ServeConnection(boost::asio::ip::tcp::socket socket, Worker& worker,
                                             ServerState& state);

/// Says that there are too many connections, and closes.
boost::asio::awaitable<void> RefuseConnection(boost::asio::ip::tcp::socket socket, Worker& worker,
                                              ServerState& state);

/// Cancels what has waited for too long, on all connections of the worker. Called a few times per
/// shortest timeout: one timer per thread instead of one per read.
void SweepConnections(Worker& worker, TimePoint now);

}  // namespace bouquet::ivy::http
