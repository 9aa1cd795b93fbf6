#include "ivy/handlers/text_handler.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ivy/handlers/fail.h"
#include "ivy/handlers/parse_options.h"
#include "ivy/handlers/resolve_request.h"
#include "ivy/handlers/service_fields.h"

namespace bouquet::ivy {

std::variant<TextHandler::Prepared, api::Error> TextHandler::Prepare(
    const api::TextDialect& dialect, http::Request& request) const {
  const std::shared_ptr<const Config> config = config_.Current();
  auto service = ReadServiceFields(request, std::chrono::milliseconds(config->request_timeout_ms));
  if (auto* error = std::get_if<api::Error>(&service)) {
    return std::move(*error);
  }
  const ServiceFields& fields = std::get<ServiceFields>(service);
  api::Request body;
  body.skip_special_tokens = dialect.skips_special_tokens;
  if (std::optional<api::Error> error =
          api::ParseBody(request.body, dialect.body, ParseOptionsOf(*config), body)) {
    return *std::move(error);
  }
  const Result<ModelEntry*> model = models_.FindLoaded(body.model);
  if (!model.ok()) {
    return api::ErrorFrom(model.status());
  }
  Prepared prepared;
  prepared.served = (*model)->served();
  const model::ModelFolder& folder = prepared.served->folder;
  prepared.rendering = {.answers = {},
                        .count_only = body.count_only,
                        .return_token_strings = body.return_token_strings,
                        .max_input_tokens = MaxInputTokens(folder, *config)};
  Result<TextRequest> text = ResolveTextRequest(std::move(body), folder, *config);
  if (!text.ok()) {
    return api::ErrorFrom(text.status());
  }
  prepared.text = std::move(text).value();
  prepared.text.traffic_class = fields.traffic_class;
  prepared.text.deadline = Deadline::After(request.received, fields.timeout);
  prepared.text.cancelled = request.cancelled;
  std::string().swap(request.body);
  return prepared;
}

boost::asio::awaitable<http::Response> TextHandler::Handle(const api::TextDialect& dialect,
                                                           http::Request& request) const {
  const auto fail = [&](const api::Error& error) { return Fail(error, dialect.dialect, request); };
  std::variant<Prepared, api::Error> outcome = Prepare(dialect, request);
  if (const auto* error = std::get_if<api::Error>(&outcome)) {
    co_return fail(*error);
  }
  auto& prepared = std::get<Prepared>(outcome);
  const Result<std::vector<TextAnswer>> answers =
      co_await prepared.served->read_texts(std::move(prepared.text));
  if (!answers.ok()) {
    co_return fail(api::ErrorFrom(answers.status()));
  }
  prepared.rendering.answers = *answers;
  http::Response response;
  dialect.render(prepared.rendering, response.body);
  co_return response;
}

boost::asio::awaitable<http::Response> TextHandler::HandleTokenize(http::Request& request) const {
  return Handle(api::TokenizeDialectOf(request.body, ParseOptionsOf(*config_.Current())), request);
}

}  // namespace bouquet::ivy
