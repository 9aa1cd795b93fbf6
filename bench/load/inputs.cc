#include "bench/load/inputs.h"

#include <fmt/format.h>

#include <fstream>
#include <random>

#include "base/json.h"

namespace bouquet::bench {
namespace {

constexpr size_t kDistinctRequests = 64;
constexpr size_t kDistinctBytes = size_t{64} << 20;
constexpr size_t kLeastDistinct = 4;
constexpr size_t kMaxTexts = 1'000'000;

std::vector<int32_t> RandomIds(std::mt19937_64& random, const InputSource& source, int32_t count) {
  // The remainder's bias is below 2^-40 for any vocabulary, and every library gives the same ids.
  const auto range = static_cast<uint64_t>(source.max_id - source.min_id) + 1;
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) {
    id = source.min_id + static_cast<int32_t>(random() % range);
  }
  return ids;
}

}  // namespace

Result<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return NotFound(fmt::format("cannot read {}", path));
  }
  std::vector<std::string> texts;
  std::string line;
  for (int64_t number = 1; texts.size() < kMaxTexts && std::getline(file, line); ++number) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    if (!simdjson::validate_utf8(line)) {
      return InvalidArgument(fmt::format("{}:{}: the line is not UTF-8", path, number));
    }
    if (!line.empty()) {
      texts.push_back(line);
    }
  }
  if (texts.empty()) {
    return InvalidArgument(fmt::format("the file has no text: {}", path));
  }
  return texts;
}

std::vector<client::EmbedInput> MakeInputs(const InputSource& source, const RowPlan& row,
                                           size_t index) {
  std::vector<client::EmbedInput> inputs;
  const auto batch = static_cast<size_t>(row.batch);
  if (row.tokens == 0) {
    CHECK(!source.texts.empty());
    for (size_t i = 0; i < batch; ++i) {
      inputs.emplace_back(source.texts[(index * batch + i) % source.texts.size()]);
    }
    return inputs;
  }
  std::seed_seq seed{source.seed, static_cast<uint64_t>(row.tokens),
                     static_cast<uint64_t>(row.batch), static_cast<uint64_t>(index)};
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < batch; ++i) {
    inputs.emplace_back(RandomIds(random, source, row.tokens));
  }
  return inputs;
}

std::vector<LoadRequest> MakeRequests(const InputSource& source, const RowPlan& row,
                                      const client::ClientOptions& target) {
  std::vector<LoadRequest> requests;
  size_t num_bytes = 0;
  // Texts are few or many: all of them are sent, so that an average means what it says.
  const size_t wanted =
      row.tokens > 0 ? kDistinctRequests : source.texts.size() / static_cast<size_t>(row.batch) + 1;
  while (requests.size() < wanted &&
         (requests.size() < kLeastDistinct || num_bytes < kDistinctBytes)) {
    const auto inputs = MakeInputs(source, row, requests.size());
    requests.push_back({client::PrepareRequest(target, inputs),
                        int64_t{row.tokens} * static_cast<int64_t>(row.batch)});
    num_bytes += requests.back().prepared.bytes.size();
  }
  return requests;
}

}  // namespace bouquet::bench
