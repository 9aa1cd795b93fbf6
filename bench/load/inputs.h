#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load/load_loop.h"
#include "bench/load/row_plan.h"
#include "client/embed_client.h"

namespace bouquet::bench {

/// Where inputs come from: texts in turn, or random token ids when there are none.
struct InputSource {
  std::vector<std::string> texts;
  int32_t min_id = 1000;  // ids below are often special ones
  int32_t max_id = 20'000;
  uint64_t seed = 1;
};

/// The non-empty lines of a file of UTF-8 text. Error: kNotFound when it cannot be read;
/// kInvalidArgument when it has no line, and naming the line that is not UTF-8.
Result<std::vector<std::string>> ReadTexts(const std::string& path);

/// The inputs of request `index` of a row: the same for the same seed, row shape and index. Ids are
/// uniform in min_id..max_id, so no two requests share a prefix.
std::vector<client::EmbedInput> MakeInputs(const InputSource& source, const RowPlan& row,
                                           size_t index);

/// The requests that a row sends in turn: 64, or fewer when they are large.
std::vector<LoadRequest> MakeRequests(const InputSource& source, const RowPlan& row,
                                      const client::ClientOptions& target);

}  // namespace bouquet::bench
