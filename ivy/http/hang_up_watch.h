#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>

namespace bouquet::ivy::http {

/// Looks after a socket while a handler works on its request: bytes of the next request are kept in
/// the read buffer, and a client that hangs up is noticed. Thread: the connection's.
class HangUpWatch {
 public:
  /// Socket and buffer belong to the owner.
  HangUpWatch(boost::asio::ip::tcp::socket& socket, boost::beast::flat_buffer& buffer)
      : socket_(socket), buffer_(buffer) {}

  /// `owner` is kept alive while an operation is pending, whatever becomes of the connection
  /// meanwhile. `cancelled` is set when the client has gone. `may_probe`: the client understands
  /// interim answers (HTTP/1.1).
  void Start(std::shared_ptr<void> owner, std::stop_source cancelled, bool may_probe);
  /// Takes no time; what is pending is completed by the loop.
  void Cancel();
  /// Waits for what Cancel has left. Before the socket is read again.
  boost::asio::awaitable<void> Join();

  bool gone() const { return gone_; }                // it neither sends nor reads any more
  bool half_closed() const { return half_closed_; }  // it sends no more

 private:
  void ReadAhead(std::shared_ptr<void> owner);
  void OnReadAhead(boost::system::error_code error, size_t num_bytes, std::shared_ptr<void> owner);
  void Probe(std::shared_ptr<void> owner);
  void OnGone();

  boost::asio::ip::tcp::socket& socket_;
  boost::beast::flat_buffer& buffer_;
  std::stop_source cancelled_{std::nostopstate};
  bool may_probe_ = false;
  bool pending_ = false;
  bool stopping_ = false;
  bool half_closed_ = false;
  bool gone_ = false;
};

}  // namespace bouquet::ivy::http
