#include "bench/load/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "bench/load/summary.h"

namespace bouquet::bench {
namespace {

constexpr std::array<std::string_view, 4> kCompared = {"p50_ms", "p99_ms", "embeddings_per_s",
                                                       "recovery_s"};

Result<ComparableResult::Figure> ReadFigure(std::string_view name, const JsonObject& object) {
  ComparableResult::Figure figure;
  figure.name = name;
  ASSIGN_OR_RETURN(const auto median, object.Number("median"));
  ASSIGN_OR_RETURN(const auto least, object.Number("min"));
  ASSIGN_OR_RETURN(const auto most, object.Number("max"));
  simdjson::dom::array rounds;
  const auto element = object.Element("rounds");
  if (!median || !least || !most || !element ||
      element->get_array().get(rounds) != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: metric {} has no median, min, max and rounds", object.where(), name));
  }
  figure.spread = {*median, *least, *most};
  figure.num_rounds = rounds.size();
  return figure;
}

Result<ComparableResult::Row> ReadRow(simdjson::dom::element element, const std::string& where) {
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(element, where));
  ComparableResult::Row row;
  ASSIGN_OR_RETURN(row.name, object.RequiredString("name"));
  ASSIGN_OR_RETURN(row.complete, object.RequiredBool("complete"));
  ASSIGN_OR_RETURN(const auto metrics, object.Object("metrics"));
  if (!metrics) {
    return InvalidArgument(fmt::format("{}: \"metrics\" is missing", where));
  }
  for (const auto [name, value] : metrics->object()) {
    ASSIGN_OR_RETURN(const JsonObject figure, JsonObject::From(value, where));
    ASSIGN_OR_RETURN(auto read, ReadFigure(name, figure));
    row.figures.push_back(std::move(read));
  }
  return row;
}

template <class List>
auto FindNamed(const List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const auto& item) { return item.name == name; });
}

Change::Verdict Judge(const ComparableResult::Figure& before,
                      const ComparableResult::Figure& after) {
  if (before.num_rounds < 2 || after.num_rounds < 2) {
    return Change::Verdict::kUnknown;
  }
  const bool apart = after.spread.min > before.spread.max || after.spread.max < before.spread.min;
  if (!apart) {
    return Change::Verdict::kSame;
  }
  const bool smaller_is_better = before.name.ends_with("_ms") || before.name == "recovery_s";
  const bool smaller = after.spread.median < before.spread.median;
  return smaller == smaller_is_better ? Change::Verdict::kBetter : Change::Verdict::kWorse;
}

std::string_view Show(Change::Verdict verdict) {
  switch (verdict) {
    case Change::Verdict::kSame: return "within the spread";
    case Change::Verdict::kBetter: return "BETTER";
    case Change::Verdict::kWorse: return "WORSE";
    case Change::Verdict::kUnknown: return "one round: spread unknown";
  }
  return "";
}

void AppendMissing(const ComparableResult& from, const ComparableResult& in, std::string& out) {
  for (const auto& row : from.rows) {
    if (FindNamed(in.rows, row.name) == in.rows.end()) {
      fmt::format_to(std::back_inserter(out), "{}: only in {}\n", row.name, from.source);
    } else if (!row.complete) {
      fmt::format_to(std::back_inserter(out), "{}: incomplete in {}\n", row.name, from.source);
    }
  }
}

std::string ShowSpread(const Spread& spread) {
  return fmt::format("{} ({}..{})", ShowNumber(spread.median), ShowNumber(spread.min),
                     ShowNumber(spread.max));
}

}  // namespace

Result<ComparableResult> ReadComparable(std::string_view json, std::string source) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(json, source));
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::From(document.root(), source));
  ASSIGN_OR_RETURN(const std::string format, root.RequiredString("format"));
  if (format != "bouquet-bench-1") {
    return InvalidArgument(fmt::format(
        "{}: must be a result of `bouquet bench`, bouquet-bench-1: {}", source, format));
  }
  ComparableResult result;
  ASSIGN_OR_RETURN(result.suite, root.RequiredString("suite"));
  ASSIGN_OR_RETURN(result.commit, root.RequiredString("commit"));
  ASSIGN_OR_RETURN(const auto machine, root.Object("machine"));
  if (machine) {
    ASSIGN_OR_RETURN(result.cpu, machine->RequiredString("cpu"));
  }
  simdjson::dom::array rows;
  const auto element = root.Element("rows");
  if (!element || element->get_array().get(rows) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"rows\" is no array", source));
  }
  for (const simdjson::dom::element row : rows) {
    ASSIGN_OR_RETURN(auto read,
                     ReadRow(row, fmt::format("{}: rows[{}]", source, result.rows.size())));
    result.rows.push_back(std::move(read));
  }
  result.source = std::move(source);
  return result;
}

std::vector<Change> Compare(const ComparableResult& before, const ComparableResult& after) {
  std::vector<Change> changes;
  for (const auto& row : before.rows) {
    const auto other = FindNamed(after.rows, row.name);
    if (other == after.rows.end()) {
      continue;
    }
    for (const std::string_view name : kCompared) {
      const auto mine = FindNamed(row.figures, name);
      const auto theirs = FindNamed(other->figures, name);
      if (mine == row.figures.end() || theirs == other->figures.end()) {
        continue;
      }
      Change change{row.name, std::string(name),    mine->spread, theirs->spread,
                    0,        Judge(*mine, *theirs)};
      change.ratio = mine->spread.median > 0 ? theirs->spread.median / mine->spread.median : 0;
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

std::string WriteComparison(const ComparableResult& before, const ComparableResult& after) {
  std::string out = fmt::format("before: {} (commit {})\nafter:  {} (commit {})\n", before.source,
                                before.commit, after.source, after.commit);
  if (before.suite != after.suite) {
    out += fmt::format("note: the suites differ: {} and {}\n", before.suite, after.suite);
  }
  if (before.cpu != after.cpu) {
    out += fmt::format("note: the machines differ: {} and {}\n", before.cpu, after.cpu);
  }
  std::string row;
  for (const Change& change : Compare(before, after)) {
    if (change.row != row) {
      row = change.row;
      out += row + "\n";
    }
    fmt::format_to(std::back_inserter(out), "  {:<18}  {:>24} -> {:>24}  x {:.3f}  {}\n",
                   change.figure, ShowSpread(change.before), ShowSpread(change.after), change.ratio,
                   Show(change.verdict));
  }
  AppendMissing(before, after, out);
  AppendMissing(after, before, out);
  return out;
}

}  // namespace bouquet::bench
