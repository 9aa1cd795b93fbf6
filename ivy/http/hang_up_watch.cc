#include "ivy/http/hang_up_watch.h"

#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace bouquet::ivy::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kMaxReadAheadBytes = 64 << 10;  // of pipelined requests
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

void HangUpWatch::Start(std::shared_ptr<void> owner, std::stop_source cancelled, bool may_probe) {
  cancelled_ = std::move(cancelled);
  may_probe_ = may_probe;
  stopping_ = false;
  ReadAhead(std::move(owner));
}

void HangUpWatch::ReadAhead(std::shared_ptr<void> owner) {
  if (stopping_ || buffer_.size() >= kMaxReadAheadBytes) {
    return;
  }
  pending_ = true;
  socket_.async_read_some(
      buffer_.prepare(kReadBytes),
      [this, owner = std::move(owner)](error_code error, size_t num_bytes) mutable {
        OnReadAhead(error, num_bytes, std::move(owner));
      });
}

void HangUpWatch::OnReadAhead(error_code error, size_t num_bytes, std::shared_ptr<void> owner) {
  pending_ = false;
  buffer_.commit(num_bytes);
  if (!error) {
    ReadAhead(std::move(owner));
  } else if (error == asio::error::eof) {
    half_closed_ = true;
    if (!stopping_) {
      Probe(std::move(owner));
    }
  } else if (error != asio::error::operation_aborted) {
    OnGone();
  }
}

/// The client has closed its sending side: it may have gone, or be waiting for the answer. Only a
/// client that has gone resets the connection when something is sent to it, and an interim answer
/// may be sent at any time (RFC 9110 section 15.2). HTTP/1.0 has none: there it counts as gone.
void HangUpWatch::Probe(std::shared_ptr<void> owner) {
  error_code error;
  if (may_probe_) {
    socket_.write_some(asio::buffer(kContinue), error);
  }
  if (!may_probe_ || (error && error != asio::error::would_block)) {
    OnGone();
    return;
  }
  pending_ = true;
  socket_.async_wait(tcp::socket::wait_error,
                     [this, owner = std::move(owner)](error_code wait_error) {
                       pending_ = false;
                       if (wait_error != asio::error::operation_aborted) {
                         OnGone();
                       }
                     });
}

void HangUpWatch::OnGone() {
  gone_ = true;
  cancelled_.request_stop();
}

void HangUpWatch::Cancel() {
  stopping_ = true;
  if (pending_) {
    error_code ignored;
    socket_.cancel(ignored);
  }
}

asio::awaitable<void> HangUpWatch::Join() {
  while (pending_) {
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  }
}

}  // namespace bouquet::ivy::http
