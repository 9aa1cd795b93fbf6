#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/load/spread.h"

namespace bouquet::bench {

/// What of a result file can be compared.
struct ComparableResult {
  struct Figure {
    std::string name;
    Spread spread;
    size_t num_rounds = 0;
  };
  struct Row {
    std::string name;
    bool complete = true;
    std::vector<Figure> figures;
  };
  std::string source;  // of the text, for messages
  std::string suite;
  std::string commit;
  std::string cpu;
  std::vector<Row> rows;
};

/// Reads what WriteJson writes. Error: kInvalidArgument naming `source` and what is wrong.
Result<ComparableResult> ReadComparable(std::string_view json, std::string source);

/// One figure in both results.
struct Change {
  enum class Verdict : uint8_t {
    kSame,  // the rounds of both overlap: no difference beyond the spread from run to run
    kBetter,
    kWorse,
    kUnknown,  // a single round has no spread
  };
  std::string row;
  std::string figure;
  Spread before;
  Spread after;
  double ratio = 0;  // after / before
  Verdict verdict = Verdict::kUnknown;
};

/// p50, p99 and embeddings/s of the rows that both have, in the order of `before`. Smaller is
/// better for figures in ms and s.
std::vector<Change> Compare(const ComparableResult& before, const ComparableResult& after);

/// For the terminal, with rows that only one has and what makes the two hard to compare.
std::string WriteComparison(const ComparableResult& before, const ComparableResult& after);

}  // namespace bouquet::bench
