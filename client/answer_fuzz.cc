// Answers of any server, arbitrary bytes. Holds: no crash; accepted rows are as many as the inputs,
// of one width and finite; a refusal has a message. Does not cover: HTTP itself, which is Beast's.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "client/answer.h"

namespace {

constexpr size_t kMostInputs = 4;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using bouquet::client::Dialect;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Dialect dialect : {Dialect::kOpenAi, Dialect::kTei}) {
    for (size_t num_inputs = 1; num_inputs <= kMostInputs; ++num_inputs) {
      const auto rows = bouquet::client::ReadAnswer(dialect, body, num_inputs);
      if (!rows.ok()) {
        CHECK(!rows.status().message().empty());
        continue;
      }
      CHECK_LT(size_t{0}, rows->dimensions);
      CHECK_EQ(rows->values.size(), rows->dimensions * num_inputs);
      for (const float value : rows->values) {
        CHECK(std::isfinite(value));
      }
    }
  }
  CHECK_LE(bouquet::client::ReadErrorMessage(body).size(), size);
  return 0;
}
