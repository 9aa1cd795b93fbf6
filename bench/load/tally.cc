#include "bench/load/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "bench/load/histogram_json.h"

namespace bouquet::bench {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int64_t>::max() / 4;

Result<int64_t> Count(const JsonObject& object, std::string_view key) {
  return object.RequiredInteger(key, 0, kMaxCount);
}

Result<Histogram> RequiredHistogram(const JsonObject& object, std::string_view key,
                                    int precision_bits = Histogram::kDefaultPrecisionBits) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> found, object.Object(key));
  if (!found) {
    return InvalidArgument(fmt::format("{}: \"{}\" is missing", object.where(), key));
  }
  return ReadHistogram(*found, precision_bits);
}

Status ReadFailures(const JsonObject& object, Tally& tally) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> failed, object.Object("failed"));
  if (!failed) {
    return InvalidArgument("tally: \"failed\" is missing");
  }
  for (const auto [name, element] : failed->object()) {
    ASSIGN_OR_RETURN(const JsonObject item, JsonObject::From(element, "tally: failed"));
    OutcomeTally& outcome = tally.failed[std::string(name)];
    ASSIGN_OR_RETURN(outcome.count, Count(item, "count"));
    ASSIGN_OR_RETURN(outcome.with_retry_after, Count(item, "with_retry_after"));
    ASSIGN_OR_RETURN(outcome.latency, RequiredHistogram(item, "latency"));
  }
  return {};
}

Status ReadWindows(const JsonObject& object, Tally& tally) {
  simdjson::dom::array list;
  const auto element = object.Element("windows");
  if (!element || element->get_array().get(list) != simdjson::SUCCESS ||
      list.size() > Tally::kMaxWindows) {
    return InvalidArgument("tally: \"windows\" is no array, or too long");
  }
  for (const simdjson::dom::element item : list) {
    ASSIGN_OR_RETURN(const JsonObject window, JsonObject::From(item, "tally: windows"));
    Window& added = tally.windows.emplace_back();
    ASSIGN_OR_RETURN(added.ok, Count(window, "ok"));
    ASSIGN_OR_RETURN(added.failed, Count(window, "failed"));
    ASSIGN_OR_RETURN(added.latency, RequiredHistogram(window, "latency", Window::kPrecisionBits));
  }
  return {};
}

}  // namespace

int64_t Tally::num_failed() const {
  int64_t total = 0;
  for (const auto& [name, outcome] : failed) {
    total += outcome.count;
  }
  return total;
}

void Tally::Record(const Sample& sample, bool with_windows) {
  const bool ok = sample.outcome == "ok";
  lag.Record(sample.lag);
  num_reconnected += sample.reconnected ? 1 : 0;
  if (ok) {
    latency.Record(sample.latency);
    num_inputs += sample.num_inputs;
    num_tokens += sample.num_tokens;
  } else {
    OutcomeTally& outcome = failed[sample.outcome];
    ++outcome.count;
    outcome.with_retry_after += sample.has_retry_after ? 1 : 0;
    outcome.latency.Record(sample.latency);
  }
  if (!with_windows) {
    return;
  }
  const size_t index = std::min(
      static_cast<size_t>(std::max<int64_t>(sample.intended / kWindow, 0)), kMaxWindows - 1);
  if (index >= windows.size()) {
    windows.resize(index + 1);
  }
  Window& window = windows[index];
  ++(ok ? window.ok : window.failed);
  if (ok) {
    window.latency.Record(sample.latency);
  }
}

void Tally::Merge(const Tally& other) {
  latency.Merge(other.latency);
  lag.Merge(other.lag);
  for (const auto& [name, outcome] : other.failed) {
    OutcomeTally& mine = failed[name];
    mine.count += outcome.count;
    mine.with_retry_after += outcome.with_retry_after;
    mine.latency.Merge(outcome.latency);
  }
  windows.resize(std::max(windows.size(), other.windows.size()));
  for (size_t i = 0; i < other.windows.size(); ++i) {
    windows[i].ok += other.windows[i].ok;
    windows[i].failed += other.windows[i].failed;
    windows[i].latency.Merge(other.windows[i].latency);
  }
  num_inputs += other.num_inputs;
  num_tokens += other.num_tokens;
  num_reconnected += other.num_reconnected;
  first_error = first_error.empty() ? other.first_error : first_error;
  elapsed = std::max(elapsed, other.elapsed);
  complete = complete && other.complete;
}

std::string WriteTally(const Tally& tally) {
  JsonWriter json;
  json.BeginObject().Key("latency");
  AppendHistogram(tally.latency, json);
  json.Key("lag");
  AppendHistogram(tally.lag, json);
  json.Key("failed").BeginObject();
  for (const auto& [name, outcome] : tally.failed) {
    json.Key(name).BeginObject().Field("count", outcome.count);
    json.Field("with_retry_after", outcome.with_retry_after).Key("latency");
    AppendHistogram(outcome.latency, json);
    json.EndObject();
  }
  json.EndObject().Key("windows").BeginArray();
  for (const Window& window : tally.windows) {
    json.BeginObject().Field("ok", window.ok).Field("failed", window.failed).Key("latency");
    AppendHistogram(window.latency, json);
    json.EndObject();
  }
  json.EndArray().Field("num_inputs", tally.num_inputs).Field("num_tokens", tally.num_tokens);
  json.Field("num_reconnected", tally.num_reconnected);
  json.Field("first_error", tally.first_error).Field("elapsed_ns", tally.elapsed.count());
  json.Field("complete", tally.complete).EndObject();
  return std::move(json).Take();
}

Result<Tally> ReadTally(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, "tally"));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), "tally"));
  Tally tally;
  ASSIGN_OR_RETURN(tally.latency, RequiredHistogram(object, "latency"));
  ASSIGN_OR_RETURN(tally.lag, RequiredHistogram(object, "lag"));
  RETURN_IF_ERROR(ReadFailures(object, tally));
  RETURN_IF_ERROR(ReadWindows(object, tally));
  ASSIGN_OR_RETURN(tally.num_inputs, Count(object, "num_inputs"));
  ASSIGN_OR_RETURN(tally.num_tokens, Count(object, "num_tokens"));
  ASSIGN_OR_RETURN(tally.num_reconnected, Count(object, "num_reconnected"));
  ASSIGN_OR_RETURN(tally.first_error, object.RequiredString("first_error"));
  ASSIGN_OR_RETURN(const int64_t elapsed_ns, Count(object, "elapsed_ns"));
  tally.elapsed = std::chrono::nanoseconds(elapsed_ns);
  ASSIGN_OR_RETURN(tally.complete, object.RequiredBool("complete"));
  return tally;
}

}  // namespace bouquet::bench
