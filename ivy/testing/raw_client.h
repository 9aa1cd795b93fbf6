#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bouquet::ivy::testing {

/// An answer as it came over the wire.
struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int num_interim = 0;  // 1xx answers that came before it

  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

/// A socket that sends exactly what it is told, for what no well-behaved client sends. Fails the
/// test when it cannot connect. Every read gives up after ten seconds.
class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False when the server has closed.
  bool Send(std::string_view bytes);
  /// The next answer; nullopt when the server closed without one.
  std::optional<RawResponse> Read(bool head_only = false);
  /// True when the server closes the connection without sending anything more.
  bool ReadsEnd();
  void CloseSending();
  void Close();

 private:
  bool Fill();
  int socket_ = -1;
  std::string buffer_;
};

std::string Get(std::string_view path, std::string_view headers = "");
std::string Post(std::string_view path, std::string_view body, std::string_view headers = "");

/// One request on a connection of its own.
RawResponse Ask(uint16_t port, std::string_view request);

}  // namespace bouquet::ivy::testing
