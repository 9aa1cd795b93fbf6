// What does Ivy itself cost? Serves the gateway with an engine that answers at once with constant
// rows, or, with "bare", nothing but the HTTP library's echo on the same loop: the ratio of the
// two, measured in one run, is the number to quote.
//
//   null_engine_bench PORT [bare|gateway] [dimensions]
//   wrk -t1 -c16 -d10 -s post.lua http://127.0.0.1:PORT/v1/embeddings
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "ivy/gateway.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;
using asio::ip::tcp;

constexpr auto kUseAwaitable = asio::as_tuple(asio::use_awaitable);

awaitable<void> Echo(tcp::socket socket) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  buffer.reserve(16 << 10);
  for (;;) {
    beast::http::request<beast::http::string_body> request;
    stream.expires_after(std::chrono::seconds(30));
    const auto [read_error, num_read] =
        co_await beast::http::async_read(stream, buffer, request, kUseAwaitable);
    if (read_error) {
      co_return;
    }
    beast::http::response<beast::http::string_body> response{beast::http::status::ok,
                                                             request.version()};
    response.set(beast::http::field::content_type, "application/json");
    response.keep_alive(request.keep_alive());
    response.body() = std::move(request.body());
    response.prepare_payload();
    const auto [write_error, num_written] =
        co_await beast::http::async_write(stream, response, kUseAwaitable);
    if (write_error) {
      co_return;
    }
  }
}

awaitable<void> AcceptEchoes(tcp::acceptor& acceptor) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(kUseAwaitable);
    if (!error) {
      socket.set_option(tcp::no_delay(true));
      asio::co_spawn(acceptor.get_executor(), Echo(std::move(socket)), asio::detached);
    }
  }
}

void RunBare(uint16_t port) {
  asio::io_context loop(1);
  tcp::acceptor acceptor(loop, {asio::ip::make_address("127.0.0.1"), port});
  asio::co_spawn(loop, AcceptEchoes(acceptor), asio::detached);
  loop.run();
}

awaitable<bouquet::Result<bouquet::ivy::EncodedRows>> EncodeNothing(
    bouquet::ivy::EncodeRequest request) {
  bouquet::ivy::EncodedRows rows;
  const size_t num_inputs = request.inputs.size();
  rows.dimensions = request.output.dimensions;
  rows.values.resize(num_inputs * rows.dimensions);
  for (size_t i = 0; i < rows.values.size(); ++i) {
    rows.values[i] = static_cast<float>(i % 997) * 0.0001234F - 0.05F;
  }
  rows.token_counts.assign(num_inputs, 8);
  rows.truncated.assign(num_inputs, 0);
  rows.statuses.resize(num_inputs);
  co_return rows;
}

int RunGateway(uint16_t port, int32_t dimensions) {
  bouquet::Metrics metrics;
  bouquet::ivy::ServedModel served;
  served.name = "null";
  served.folder.pipeline.width = dimensions;
  served.folder.max_input_tokens = 512;
  served.encode = EncodeNothing;
  auto gateway = bouquet::ivy::Gateway::Create({.port = port}, {std::move(served)}, metrics);
  if (!gateway.ok() || !(*gateway)->Start().ok()) {
    std::fprintf(stderr, "cannot start\n");
    return 1;
  }
  (*gateway)->SetReady("null", {});
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, int otherwise) {
    const std::string_view text = index < argc ? argv[index] : "";
    int number = otherwise;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto port = static_cast<uint16_t>(argument(1, 8080));
  const std::string_view kind = argc > 2 ? argv[2] : "gateway";
  if (kind == "bare") {
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    RunBare(port);
    return 0;
  }
  return RunGateway(port, argument(3, 384));
}
