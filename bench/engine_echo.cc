// The engine behind a bare socket: a step for each request, on ids that are given once, and an
// answer that is ready made. No HTTP, no JSON, no tokenizer, no threads but the engine's: what is
// left when a server adds nothing. The floor that `./dev bench http-peers` compares a query with.
//
//   engine_echo MODEL PORT ID,ID,... [NAME=VALUE ...]
//
// One connection after the other, each request in one read. A GET, by which one asks whether it is
// ready, is answered without a step.
#include <array>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "base/log.h"
#include "base/status.h"
#include "bench/engine_arguments.h"
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/engine.h"

namespace bouquet::bench {
namespace {

using boost::asio::ip::tcp;

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr size_t kRowBytes = 2048;  // about what 384 float32 are in Base64

Result<int32_t> ParseNumber(std::string_view text, std::string_view what) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format("{} must be a number: \"{}\"", what, text));
  }
  return number;
}

Result<std::vector<int32_t>> ParseIds(std::string_view text) {
  std::vector<int32_t> ids;
  while (true) {
    const size_t comma = text.find(',');
    ASSIGN_OR_RETURN(const int32_t id, ParseNumber(text.substr(0, comma), "an id"));
    ids.push_back(id);
    if (comma == std::string_view::npos) {
      return ids;
    }
    text.remove_prefix(comma + 1);
  }
}

std::string Answer() {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", kRowBytes,
                     std::string(kRowBytes, 'A'));
}

/// Until the client hangs up. Error: what a step failed with.
Status ServeConnection(tcp::socket& socket, rose::Engine& engine, const rose::Batch& batch) {
  const std::string answer = Answer();
  std::array<char, kReadBytes> request;
  boost::system::error_code error;
  socket.set_option(tcp::no_delay(true));
  while (true) {
    const size_t read = socket.read_some(boost::asio::buffer(request), error);
    if (error) {
      return {};
    }
    if (!std::string_view(request.data(), read).starts_with("GET")) {
      RETURN_IF_ERROR(engine.Step(batch).Wait().status());
    }
    boost::asio::write(socket, boost::asio::buffer(answer), error);
    if (error) {
      return {};
    }
  }
}

Status Serve(std::span<char* const> arguments) {
  rose::EngineOptions options;
  options.device = "cpu";
  RETURN_IF_ERROR(StartLogging("warning", "text"));
  RETURN_IF_ERROR(ReadEngineArguments(arguments.subspan(3), &options));
  ASSIGN_OR_RETURN(const int32_t port, ParseNumber(arguments[1], "PORT"));
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(arguments[2]));
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(arguments[0]));
  ASSIGN_OR_RETURN(const std::unique_ptr<rose::Engine> engine, rose::Engine::Load(folder, options));
  rose::Batch batch;
  batch.Add(ids, {}, 0, {});
  boost::asio::io_context context;
  const tcp::endpoint address(boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(port));
  tcp::acceptor acceptor(context, address);
  while (true) {
    tcp::socket socket = acceptor.accept();
    RETURN_IF_ERROR(ServeConnection(socket, *engine, batch));
  }
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  constexpr int kRequired = 3;
  if (argc < 1 + kRequired) {
    std::cerr << "usage: engine_echo MODEL PORT ID,ID,... [NAME=VALUE ...]\n";
    return 2;
  }
  const bouquet::Status status =
      bouquet::bench::Serve(std::span(argv, static_cast<size_t>(argc)).subspan(1));
  std::cerr << "engine_echo: " << status.ToString() << '\n';
  return 1;
}
