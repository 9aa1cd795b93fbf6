#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "client/url.h"

namespace bouquet::client {

/// How a request is written and its answer read.
enum class Dialect : uint8_t {
  kOpenAi,  // POST /v1/embeddings
  kTei,     // POST /embed, text-embeddings-inference
};

/// One text, or the token ids of one sequence.
using EmbedInput = std::variant<std::string, std::vector<int32_t>>;

/// Rows of one answer.
struct EmbedRows {
  size_t dimensions = 0;
  std::vector<float> values;  // [num_inputs, dimensions], in the order of the inputs
  int64_t total_tokens = 0;   // as the server counted them; 0 when it did not say
};

/// Why a request has no rows.
enum class Failure : uint8_t {
  kNone,
  kConnect,    // no connection could be made
  kTimeout,    // no whole answer within the time limit
  kClosed,     // the connection ended before the answer began
  kTruncated,  // the connection ended within the answer
  kStatus,     // the server answered with an error
  kMalformed,  // a good status, but the body is not what was asked for
};

/// What came of one request.
struct EmbedReply {
  Failure failure = Failure::kNone;
  Status status;                 // OK exactly when `failure` is kNone
  int32_t http_status = 0;       // 0: no answer, or not over HTTP
  bool has_retry_after = false;  // the refusal said when to come back
  bool reconnected = false;      // a kept connection had been closed by the server in between
  TimePoint received;            // when the last byte was there: before it was decoded
  EmbedRows rows;
};

/// "ok", "429", "timeout", …: a short closed set, for counting.
std::string OutcomeName(const EmbedReply& reply);

/// A request as it goes over the wire, made once and sent often. Immutable, so that any number of
/// requests under way (and, after a fork, any number of processes) share it.
struct PreparedRequest {
  std::string bytes;
  size_t num_inputs = 0;
};

struct ClientOptions {
  Url url;
  Dialect dialect = Dialect::kOpenAi;
  std::string route;    // in place of the dialect's own: "/embeddings"
  std::string model;    // field `model` of OpenAI; left out when empty
  std::string api_key;  // sent as a bearer token unless empty
  bool base64 = true;   // ask for vectors as base64 (OpenAI); both forms are always understood
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds request_timeout{60'000};  // first byte sent to last byte received
  size_t max_answer_bytes = size_t{512} << 20;
};

/// Asks an embedding server. One implementation per protocol; ClientOptions::url says which.
///
/// Thread: everything on the executor's one thread. Any number of calls may be under way at once.
class EmbedClient {
 public:
  virtual ~EmbedClient() = default;

  /// Opens `count` connections and keeps them, so that no measured request pays for one.
  virtual boost::asio::awaitable<Status> Connect(size_t count) = 0;
  /// Sends one request and reads its answer. `request` must outlive the call.
  virtual boost::asio::awaitable<EmbedReply> Embed(const PreparedRequest& request) = 0;
  /// What the server says about itself, a JSON object (GET `path`). Error: kNotFound and so on when
  /// it has no such page.
  virtual boost::asio::awaitable<Result<std::string>> Fetch(std::string path) = 0;
};

/// Error: kInvalidArgument when the host cannot be resolved (which blocks; gRPC finds out later).
/// The client must go before the executor's context does.
Result<std::unique_ptr<EmbedClient>> CreateEmbedClient(const boost::asio::any_io_executor& executor,
                                                       ClientOptions options);

/// Needs no connection and starts no thread. `inputs` has at least one, and over gRPC, which
/// carries no text, ids only (CHECK).
PreparedRequest PrepareRequest(const ClientOptions& options, const std::vector<EmbedInput>& inputs);

}  // namespace bouquet::client
