#include "ivy/handlers/embed_handler.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "ivy/api/float_array.h"
#include "ivy/handlers/fail.h"
#include "ivy/handlers/parse_options.h"
#include "ivy/handlers/resolve_request.h"
#include "ivy/handlers/service_fields.h"

namespace bouquet::ivy {
namespace {

constexpr size_t kMaxNamedItems = 16;  // failed inputs that a message lists

int64_t MicrosecondsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

/// Unicode characters of the text inputs.
int64_t CountCharacters(const std::vector<EncodeInput>& inputs) {
  int64_t count = 0;
  for (const EncodeInput& input : inputs) {
    if (const auto* text = std::get_if<std::string>(&input)) {
      count += std::count_if(text->begin(), text->end(), [](char c) {
        return (static_cast<uint8_t>(c) & 0xC0) != 0x80;  // continuation bytes do not count
      });
    }
  }
  return count;
}

/// The engine checks its rows; this is the last look before they are written. A row that is not
/// finite fails its item alone.
void FailRowsThatAreNotFinite(EncodedRows& rows) {
  if (api::AllFinite(rows.values)) {
    return;
  }
  rows.statuses.resize(rows.token_counts.size());
  for (size_t i = 0; i < rows.statuses.size(); ++i) {
    if (rows.statuses[i].ok() && !api::AllFinite(api::RowOf(rows, i))) {
      rows.statuses[i] = Internal("the row is not finite");
    }
  }
}

/// One error for a request of which some inputs failed; nullopt when none did.
std::optional<api::Error> ErrorOfItems(const EncodedRows& rows) {
  std::string indices;
  size_t num_failed = 0;
  const Status* first = nullptr;
  bool alike = true;
  for (size_t i = 0; i < rows.statuses.size(); ++i) {
    const Status& status = rows.statuses[i];
    if (status.ok()) {
      continue;
    }
    first = first == nullptr ? &status : first;
    alike = alike && status.code() == first->code();
    if (num_failed++ < kMaxNamedItems) {
      indices += (indices.empty() ? "" : ", ") + std::to_string(i);
    }
  }
  if (first == nullptr) {
    return std::nullopt;
  }
  const bool internal = !alike || api::KindOf(first->code()) == api::ErrorKind::kInternal;
  return api::Error{
      internal ? api::ErrorKind::kFailedItems : api::KindOf(first->code()),
      fmt::format("{}: {} of {} inputs, at {}{}",
                  internal ? "some inputs gave no usable row" : first->message(), num_failed,
                  rows.statuses.size(), indices, num_failed > kMaxNamedItems ? ", …" : ""),
      ""};
}

void AppendFields(const EncodedRows& rows, const RequestTimings& timings, int64_t characters,
                  std::string_view compute_type, std::string& fields) {
  const auto ms = [](int64_t us) { return us / 1000; };
  const auto fraction = [](int64_t us) { return static_cast<double>(us) * 1e-3; };
  const EncodeTimings& encode = timings.encode;
  const auto append = std::back_inserter(fields);
  fmt::format_to(append,
                 FMT_COMPILE("x-compute-type: {}\r\nx-compute-time: {}\r\n"
                             "x-compute-characters: {}\r\nx-compute-tokens: {}\r\n"
                             "x-total-time: {}\r\nx-tokenization-time: {}\r\nx-queue-time: {}\r\n"
                             "x-inference-time: {}\r\n"),
                 compute_type, ms(encode.tokenize_us + encode.queue_us + encode.step_us),
                 characters, rows.total_tokens(), ms(timings.total_us), ms(encode.tokenize_us),
                 ms(encode.queue_us), ms(encode.step_us));
  fmt::format_to(append,
                 FMT_COMPILE("server-timing: parse;dur={:.3f}, tokenize;dur={:.3f}, "
                             "queue;dur={:.3f}, step;dur={:.3f}, render;dur={:.3f}, "
                             "total;dur={:.3f}\r\n"),
                 fraction(timings.parse_us), fraction(encode.tokenize_us),
                 fraction(encode.queue_us), fraction(encode.step_us), fraction(timings.render_us),
                 fraction(timings.total_us));
  const auto cut = std::count_if(rows.truncated.begin(), rows.truncated.end(),
                                 [](uint8_t truncated) { return truncated != 0; });
  if (cut > 0) {
    fmt::format_to(append, FMT_COMPILE("x-bouquet-truncated: {}\r\n"), cut);
  }
}

}  // namespace

EmbedHandler::EmbedHandler(const ModelTable& models, const Snapshot<Config>& config,
                           Metrics& metrics)
    : models_(models), config_(config) {
  for (const std::unique_ptr<ModelEntry>& entry : models.entries()) {
    metrics_[entry.get()] = std::make_unique<EmbedMetrics>(metrics, entry->name());
  }
}

std::variant<EmbedHandler::Prepared, api::Error> EmbedHandler::Prepare(
    const api::EmbedDialect& dialect, http::Request& request) const {
  const std::shared_ptr<const Config> config = config_.Current();
  auto service = ReadServiceFields(request, std::chrono::milliseconds(config->request_timeout_ms));
  if (auto* error = std::get_if<api::Error>(&service)) {
    return std::move(*error);
  }
  const ServiceFields& fields = std::get<ServiceFields>(service);
  api::ParseResult parsed = dialect.parse(request.body, ParseOptionsOf(*config));
  if (auto* error = std::get_if<api::Error>(&parsed)) {
    return std::move(*error);
  }
  auto& body = std::get<api::Request>(parsed);
  const Result<ModelEntry*> model = models_.FindLoaded(body.model);
  if (!model.ok()) {
    return api::ErrorFrom(model.status());
  }
  Prepared prepared;
  prepared.model = *model;
  prepared.encoding = body.encoding;
  prepared.allow_partial = dialect.has_item_errors && (body.allow_partial || fields.allow_partial);
  prepared.served = prepared.model->served();
  Result<EncodeRequest> encode = ResolveRequest(std::move(body), prepared.served->folder, *config);
  if (!encode.ok()) {
    return api::ErrorFrom(encode.status());
  }
  prepared.encode = std::move(encode).value();
  prepared.encode.traffic_class = fields.traffic_class;
  prepared.encode.deadline = Deadline::After(request.received, fields.timeout);
  prepared.encode.cancelled = request.cancelled;
  prepared.encode.request_id = request.request_id;
  prepared.encode.trace = fields.trace;
  prepared.num_inputs = prepared.encode.inputs.size();
  prepared.num_characters = CountCharacters(prepared.encode.inputs);
  std::string().swap(request.body);  // a large body is not kept while its rows are computed
  return prepared;
}

http::Response EmbedHandler::Render(const api::EmbedDialect& dialect, const http::Request& request,
                                    const Prepared& prepared, const EncodedRows& rows,
                                    RequestTimings timings) const {
  CHECK_EQ(rows.token_counts.size(), prepared.num_inputs);
  CHECK_EQ(rows.truncated.size(), prepared.num_inputs);
  CHECK_EQ(rows.values.size(), prepared.num_inputs * rows.dimensions);
  const ModelEntry& model = *prepared.model;
  http::Response response;
  const TimePoint begin = SystemClock().Now();
  dialect.render({.rows = rows,
                  .model = model.name(),
                  .encoding = prepared.encoding,
                  .request_id = request.request_id},
                 response.body);
  const TimePoint end = SystemClock().Now();
  timings.encode = rows.timings;
  timings.render_us = MicrosecondsBetween(begin, end);
  timings.total_us = MicrosecondsBetween(request.received, end);
  AppendFields(rows, timings, prepared.num_characters, model.facts().device, response.fields);
  metrics_.at(&model)->CountAnswer(rows, timings);
  return response;
}

boost::asio::awaitable<http::Response> EmbedHandler::Handle(const api::EmbedDialect& dialect,
                                                            http::Request& request) const {
  const auto fail = [&](const api::Error& error) { return Fail(error, dialect.dialect, request); };

  std::variant<Prepared, api::Error> outcome = Prepare(dialect, request);
  if (const auto* error = std::get_if<api::Error>(&outcome)) {
    co_return fail(*error);
  }
  auto& prepared = std::get<Prepared>(outcome);
  RequestTimings timings;
  timings.parse_us = MicrosecondsBetween(request.received, SystemClock().Now());

  Result<EncodedRows> rows = co_await prepared.served->encode(std::move(prepared.encode));
  if (!rows.ok()) {
    co_return fail(api::ErrorFrom(rows.status()));
  }
  FailRowsThatAreNotFinite(*rows);
  if (!prepared.allow_partial) {
    if (const std::optional<api::Error> error = ErrorOfItems(*rows)) {
      co_return fail(*error);
    }
  }
  co_return Render(dialect, request, prepared, *rows, timings);
}

}  // namespace bouquet::ivy
