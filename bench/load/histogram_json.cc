#include "bench/load/histogram_json.h"

#include <fmt/format.h>

#include <limits>

namespace bouquet::bench {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

}  // namespace

void AppendHistogram(const Histogram& histogram, JsonWriter& json) {
  json.BeginObject().Field("min_ns", histogram.min().count());
  json.Field("max_ns", histogram.max().count()).Field("sum_ns", histogram.sum().count());
  json.Key("buckets").BeginArray();
  for (const auto& [ns, count] : histogram.Buckets()) {
    json.BeginArray().Value(ns).Value(count).EndArray();
  }
  json.EndArray().EndObject();
}

Result<Histogram> ReadHistogram(const JsonObject& object, int precision_bits) {
  simdjson::dom::array list;
  const auto element = object.Element("buckets");
  if (!element || element->get_array().get(list) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"buckets\" is no array", object.where()));
  }
  std::vector<std::pair<int64_t, int64_t>> buckets;
  for (const simdjson::dom::element item : list) {
    int64_t ns = 0;
    int64_t count = 0;
    if (item.at(0).get_int64().get(ns) != simdjson::SUCCESS ||
        item.at(1).get_int64().get(count) != simdjson::SUCCESS) {
      return InvalidArgument(
          fmt::format("{}: a bucket must be [nanoseconds, count]", object.where()));
    }
    buckets.emplace_back(ns, count);
  }
  ASSIGN_OR_RETURN(const int64_t min_ns, object.RequiredInteger("min_ns", 0, kMost));
  ASSIGN_OR_RETURN(const int64_t max_ns, object.RequiredInteger("max_ns", 0, kMost));
  ASSIGN_OR_RETURN(const int64_t sum_ns, object.RequiredInteger("sum_ns", 0, kMost));
  return Histogram::FromBuckets(buckets, std::chrono::nanoseconds(min_ns),
                                std::chrono::nanoseconds(max_ns), std::chrono::nanoseconds(sum_ns),
                                precision_bits);
}

}  // namespace bouquet::bench
