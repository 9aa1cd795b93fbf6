#pragma once

#include <variant>

#include <boost/asio/awaitable.hpp>

#include "base/snapshot.h"
#include "ivy/api/text_dialect.h"
#include "ivy/config.h"
#include "ivy/handlers/served_model.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// The story of one request to tokenize or to decode, in every dialect: parse, resolve, ask the
/// tokenizer, render. Thread: the connection's; an await holds none.
class TextHandler {
 public:
  /// All must outlive the handler.
  TextHandler(const ModelTable& models, const Snapshot<Config>& config)
      : models_(models), config_(config) {}

  boost::asio::awaitable<http::Response> Handle(const api::TextDialect& dialect,
                                                http::Request& request) const;
  /// In the dialect that the body has.
  boost::asio::awaitable<http::Response> HandleTokenize(http::Request& request) const;

 private:
  /// What is known of a request before the tokenizer is asked.
  struct Prepared {
    std::shared_ptr<const ServedModel> served;  // until the answer has been given
    TextRequest text;
    api::TextAnswers rendering;  // but for the answers
  };

  std::variant<Prepared, api::Error> Prepare(const api::TextDialect& dialect,
                                             http::Request& request) const;

  const ModelTable& models_;
  const Snapshot<Config>& config_;
};

}  // namespace bouquet::ivy
