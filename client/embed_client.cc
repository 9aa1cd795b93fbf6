#include "client/embed_client.h"

#include <fmt/format.h>

#include <utility>

#include "client/grpc_embed_client.h"
#include "client/http_embed_client.h"
#include "client/request_body.h"

namespace bouquet::client {

std::string OutcomeName(const EmbedReply& reply) {
  switch (reply.failure) {
    case Failure::kNone: return "ok";
    case Failure::kConnect: return "connect";
    case Failure::kTimeout: return "timeout";
    case Failure::kClosed: return "closed";
    case Failure::kTruncated: return "truncated";
    case Failure::kStatus:
      return reply.http_status != 0 ? fmt::format("{}", reply.http_status)
                                    : std::string(StatusCodeName(reply.status.code()));
    case Failure::kMalformed: return "malformed";
  }
  return "unknown";
}

Result<std::unique_ptr<EmbedClient>> CreateEmbedClient(const boost::asio::any_io_executor& executor,
                                                       ClientOptions options) {
  if (options.url.scheme == Url::Scheme::kGrpc) {
    return CreateGrpcEmbedClient(executor, std::move(options));
  }
  return CreateHttpEmbedClient(executor, std::move(options));
}

PreparedRequest PrepareRequest(const ClientOptions& options,
                               const std::vector<EmbedInput>& inputs) {
  CHECK(!inputs.empty());
  return {options.url.scheme == Url::Scheme::kGrpc ? GrpcRequestBytes(inputs)
                                                   : HttpRequestBytes(options, inputs),
          inputs.size()};
}

}  // namespace bouquet::client
