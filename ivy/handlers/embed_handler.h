#pragma once

#include <map>
#include <memory>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "base/snapshot.h"
#include "ivy/api/embed_dialect.h"
#include "ivy/config.h"
#include "ivy/handlers/embed_metrics.h"
#include "ivy/handlers/served_model.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// The story of one embedding request, in every dialect: parse, resolve, encode, render. Thread:
/// the connection's; an await holds none.
class EmbedHandler {
 public:
  /// All must outlive the handler.
  EmbedHandler(const ModelTable& models, const Snapshot<Config>& config, Metrics& metrics);

  boost::asio::awaitable<http::Response> Handle(const api::EmbedDialect& dialect,
                                                http::Request& request) const;

 private:
  /// What is known of a request before it is encoded.
  struct Prepared {
    const ModelEntry* model = nullptr;
    std::shared_ptr<const ServedModel> served;  // until the answer has been given
    EncodeRequest encode;
    api::VectorEncoding encoding = api::VectorEncoding::kFloat;
    bool allow_partial = false;
    size_t num_inputs = 0;
    int64_t num_characters = 0;
  };

  std::variant<Prepared, api::Error> Prepare(const api::EmbedDialect& dialect,
                                             http::Request& request) const;
  http::Response Render(const api::EmbedDialect& dialect, const http::Request& request,
                        const Prepared& prepared, const EncodedRows& rows,
                        RequestTimings timings) const;

  const ModelTable& models_;
  const Snapshot<Config>& config_;
  std::map<const ModelEntry*, std::unique_ptr<EmbedMetrics>> metrics_;
};

}  // namespace bouquet::ivy
