// Runs worlds by their seeds: what `./dev simulate` calls.
#include <charconv>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "tests/simulation/world.h"

namespace bouquet::simulation {
namespace {

constexpr std::string_view kUsage =
    "usage: simulate [--seed N] [--seeds COUNT] [--log]\n"
    "  --seed N       the first seed (1)\n"
    "  --seeds COUNT  how many, one after the other (1000, or 1 with --seed)\n"
    "  --log          print what happens in them\n";

struct Arguments {
  uint64_t first = 1;
  uint64_t count = 0;
  bool seed_given = false;
  bool log = false;
};

bool ReadNumber(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ReadArguments(const std::vector<std::string_view>& given, Arguments& arguments) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--log") {
      arguments.log = true;
    } else if (given[i] == "--seed" && i + 1 < given.size()) {
      arguments.seed_given = true;
      if (!ReadNumber(given[++i], arguments.first)) {
        return false;
      }
    } else if (given[i] == "--seeds" && i + 1 < given.size()) {
      if (!ReadNumber(given[++i], arguments.count)) {
        return false;
      }
    } else {
      return false;
    }
  }
  if (arguments.count == 0) {
    arguments.count = arguments.seed_given ? 1 : 1000;
  }
  return true;
}

int Run(const Arguments& arguments) {
  const auto started = std::chrono::steady_clock::now();
  uint64_t num_failed = 0;
  Outcome total;
  for (uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const Outcome outcome = Simulate(seed, arguments.log);
    total.num_lines += outcome.num_lines;
    total.num_requests += outcome.num_requests;
    total.num_ok += outcome.num_ok;
    if (outcome.violations.empty()) {
      continue;
    }
    ++num_failed;
    if (!arguments.log) {
      for (const std::string& line : outcome.last_lines) {
        fmt::print("{}\n", line);
      }
    }
    fmt::print("seed {}: {}\nagain: {}\n\n", seed, outcome.violations.front(), ReplayCommand(seed));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  fmt::print(
      "{} seeds from {}: {} failed; {} requests, {} answered with rows, {} events logged, "
      "{:.1f} s\n",
      arguments.count, arguments.first, num_failed, total.num_requests, total.num_ok,
      total.num_lines, took.count());
  return num_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace bouquet::simulation

int main(int argc, char** argv) {
  bouquet::simulation::Arguments arguments;
  if (!bouquet::simulation::ReadArguments({argv + 1, argv + argc}, arguments)) {
    fmt::print(stderr, "{}", bouquet::simulation::kUsage);
    return 2;
  }
  if (!bouquet::StartLogging("off", "text").ok()) {
    return 2;
  }
  return bouquet::simulation::Run(arguments);
}
