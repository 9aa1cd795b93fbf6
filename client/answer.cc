#include "client/answer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "client/base64.h"

namespace bouquet::client {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

constexpr size_t kMessageBytes = 200;

Status Malformed(std::string message) {
  return Internal("the answer is not what was asked for: " + std::move(message));
}

/// Collects rows that may come in any order.
class RowCollector {
 public:
  explicit RowCollector(size_t num_inputs) : filled_(num_inputs, false) {}

  Status Add(size_t index, element vector) {
    if (index >= filled_.size() || filled_[index]) {
      return Malformed(
          fmt::format("row {} comes twice or is beyond the {} inputs", index, filled_.size()));
    }
    filled_[index] = true;
    ++num_rows_;
    row_.clear();
    std::string_view text;
    array numbers;
    if (vector.get_string().get(text) == simdjson::SUCCESS) {
      if (!AppendBase64Floats(text, row_)) {
        return Malformed(fmt::format("row {} is not base64 of float32 values", index));
      }
    } else if (vector.get_array().get(numbers) == simdjson::SUCCESS) {
      for (const element number : numbers) {
        double value = 0;
        if (number.get_double().get(value) != simdjson::SUCCESS ||
            std::abs(value) > std::numeric_limits<float>::max()) {
          return Malformed(fmt::format("value {} of row {} is no float32", row_.size(), index));
        }
        row_.push_back(static_cast<float>(value));
      }
    } else {
      return Malformed(
          fmt::format("row {} is a {}, neither an array nor base64", index, JsonTypeName(vector)));
    }
    return Take(index);
  }

  Result<EmbedRows> Finish() && {
    if (num_rows_ != filled_.size()) {
      return Malformed(fmt::format("{} rows for {} inputs", num_rows_, filled_.size()));
    }
    return std::move(rows_);
  }

 private:
  Status Take(size_t index) {
    if (num_rows_ == 1) {
      rows_.dimensions = row_.size();
      rows_.values.resize(row_.size() * filled_.size());
    }
    if (row_.empty() || row_.size() != rows_.dimensions) {
      return Malformed(fmt::format("row {} has {} values, another one {}", index, row_.size(),
                                   rows_.dimensions));
    }
    for (size_t j = 0; j < row_.size(); ++j) {
      if (!std::isfinite(row_[j])) {
        return Malformed(fmt::format("value {} of row {} is not finite", j, index));
      }
      rows_.values[index * rows_.dimensions + j] = row_[j];
    }
    return {};
  }

  std::vector<bool> filled_;
  std::vector<float> row_;
  size_t num_rows_ = 0;
  EmbedRows rows_;
};

Result<EmbedRows> ReadOpenAi(element root, size_t num_inputs) {
  array data;
  if (root["data"].get_array().get(data) != simdjson::SUCCESS) {
    return Malformed("it has no array `data`");
  }
  RowCollector collector(num_inputs);
  size_t position = 0;
  for (const element item : data) {
    element vector;
    if (item["embedding"].get(vector) != simdjson::SUCCESS) {
      return Malformed(fmt::format("data[{}] has no `embedding`", position));
    }
    uint64_t index = position++;
    if (element given; item["index"].get(given) == simdjson::SUCCESS &&
                       given.get_uint64().get(index) != simdjson::SUCCESS) {
      return Malformed(fmt::format("data[{}].index is no index", position - 1));
    }
    RETURN_IF_ERROR(collector.Add(index, vector));
  }
  ASSIGN_OR_RETURN(EmbedRows rows, std::move(collector).Finish());
  int64_t tokens = 0;
  if (root["usage"]["total_tokens"].get_int64().get(tokens) == simdjson::SUCCESS) {
    rows.total_tokens = tokens;
  }
  return rows;
}

Result<EmbedRows> ReadTei(element root, size_t num_inputs) {
  array list;
  if (root.get_array().get(list) != simdjson::SUCCESS) {
    return Malformed(fmt::format("it is a {}, no array of rows", JsonTypeName(root)));
  }
  RowCollector collector(num_inputs);
  size_t index = 0;
  for (const element vector : list) {
    RETURN_IF_ERROR(collector.Add(index++, vector));
  }
  return std::move(collector).Finish();
}

}  // namespace

Result<EmbedRows> ReadAnswer(Dialect dialect, std::string_view body, size_t num_inputs) {
  const Result<JsonDocument> document = JsonDocument::Parse(body, "answer");
  if (!document.ok()) {
    return Malformed(document.status().message());
  }
  return dialect == Dialect::kTei ? ReadTei(document->root(), num_inputs)
                                  : ReadOpenAi(document->root(), num_inputs);
}

std::string ReadErrorMessage(std::string_view body) {
  const Result<JsonDocument> document = JsonDocument::Parse(body, "answer");
  std::string_view message;
  if (document.ok()) {
    const element root = document->root();
    if (root["error"]["message"].get_string().get(message) == simdjson::SUCCESS ||
        root["error"].get_string().get(message) == simdjson::SUCCESS ||
        root["message"].get_string().get(message) == simdjson::SUCCESS) {
      return std::string(message);
    }
  }
  std::string start(body.substr(0, kMessageBytes));
  for (char& c : start) {
    c = c < ' ' || c > '~' ? '?' : c;  // it goes to a terminal
  }
  return start;
}

}  // namespace bouquet::client
