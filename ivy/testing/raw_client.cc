#include "ivy/testing/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <gtest/gtest.h>

#include "ivy/testing/scrape.h"

namespace bouquet::ivy::testing {

RawClient::RawClient(uint16_t port, int receive_buffer_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  const timeval patience = {.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (receive_buffer_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof(receive_buffer_bytes));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

RawClient::~RawClient() { Close(); }

void RawClient::Close() {
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

void RawClient::CloseSending() { ::shutdown(socket_, SHUT_WR); }

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawClient::Fill() {
  std::array<char, 65536> chunk;
  const ssize_t received = ::recv(socket_, chunk.data(), chunk.size(), 0);
  if (received <= 0) {
    return false;
  }
  buffer_.append(chunk.data(), static_cast<size_t>(received));
  return true;
}

bool RawClient::ReadsEnd() {
  char byte = 0;
  return buffer_.empty() && ::recv(socket_, &byte, 1, 0) == 0;
}

std::optional<RawResponse> RawClient::Read(bool head_only) {
  RawResponse response;
  for (;;) {
    size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) {
        return std::nullopt;
      }
    }
    const std::string head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    response.status = NumberIn<int>(std::string_view(head).substr(9, 3));
    if (response.status >= 200) {
      for (size_t at = head.find("\r\n") + 2; at < head.size();) {
        const size_t line_end = head.find("\r\n", at);
        const size_t colon = head.find(": ", at);
        std::string name = head.substr(at, colon - at);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        response.headers[name] = head.substr(colon + 2, line_end - colon - 2);
        at = line_end + 2;
      }
      break;
    }
    ++response.num_interim;
  }
  const std::string length = response.Header("content-length");
  const size_t size = head_only || length.empty() ? 0 : NumberIn<size_t>(length);
  while (buffer_.size() < size) {
    if (!Fill()) {
      return std::nullopt;
    }
  }
  response.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return response;
}

std::string Get(std::string_view path, std::string_view headers) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) + "\r\n";
}

std::string Post(std::string_view path, std::string_view body, std::string_view headers) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

RawResponse Ask(uint16_t port, std::string_view request) {
  RawClient client(port);
  EXPECT_TRUE(client.Send(request));
  std::optional<RawResponse> response = client.Read();
  EXPECT_TRUE(response.has_value()) << "no answer to: " << request.substr(0, 200);
  return response.value_or(RawResponse());
}

}  // namespace bouquet::ivy::testing
