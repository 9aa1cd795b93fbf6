// A bare HTTP server on Beast: what the library alone can do on one thread. The floor that Ivy's
// own time per request is compared with (bench/service_items.py).
//
//   beast_echo PORT
//
// Answers each request with its own body. No limits, no timeouts, no parsing of the body.
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr size_t kReadBufferBytes = 16 * 1024;

asio::awaitable<void> Serve(tcp::socket socket) {
  socket.set_option(tcp::no_delay(true));
  boost::beast::flat_buffer buffer;
  buffer.reserve(kReadBufferBytes);
  boost::system::error_code error;
  for (;;) {
    http::request<http::string_body> request;
    co_await http::async_read(socket, buffer, request,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      co_return;
    }
    http::response<http::string_body> response(http::status::ok, request.version());
    response.keep_alive(request.keep_alive());
    response.body() = std::move(request.body());
    response.prepare_payload();
    co_await http::async_write(socket, response, asio::redirect_error(asio::use_awaitable, error));
    if (error || !response.keep_alive()) {
      co_return;
    }
  }
}

asio::awaitable<void> Accept(tcp::acceptor acceptor) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), Serve(std::move(socket)), asio::detached);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string text = argc == 2 ? argv[1] : "";
  uint16_t port = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), port).ec != std::errc()) {
    std::cerr << "usage: beast_echo PORT\n";
    return 2;
  }
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::make_address("127.0.0.1"), port});
  asio::co_spawn(context, Accept(std::move(acceptor)), asio::detached);
  context.run();
  return 0;
}
