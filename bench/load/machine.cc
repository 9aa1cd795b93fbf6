#include "bench/load/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>

#include "base/clock.h"

namespace bouquet::bench {
namespace {

constexpr std::array<std::string_view, 13> kFlagsThatMatter = {
    "avx2",        "fma",         "f16c",     "avx512f",  "avx512bw", "avx512vl", "avx512_vnni",
    "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8"};

std::string Trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  const size_t end = text.find_last_not_of(" \t");
  return start == std::string_view::npos ? std::string()
                                         : std::string(text.substr(start, end - start + 1));
}

/// "name : value" lines; the first of each name.
std::map<std::string, std::string> ReadFields(const char* path) {
  std::map<std::string, std::string> fields;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const size_t colon = line.find(':'); colon != std::string::npos) {
      fields.emplace(Trimmed(line.substr(0, colon)), Trimmed(line.substr(colon + 1)));
    }
  }
  return fields;
}

double NumberIn(const std::string& text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

MachineFacts DescribeMachine() {
  MachineFacts facts;
  std::map<std::string, std::string> cpu = ReadFields("/proc/cpuinfo");
  facts.cpu = cpu["model name"];
  std::istringstream flags(cpu["flags"]);
  for (std::string flag; flags >> flag;) {
    if (std::find(kFlagsThatMatter.begin(), kFlagsThatMatter.end(), flag) !=
        kFlagsThatMatter.end()) {
      facts.flags.push_back(flag);
    }
  }
  cpu_set_t allowed;
  facts.cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  facts.memory_gib = NumberIn(ReadFields("/proc/meminfo")["MemTotal"]) / (1024.0 * 1024.0);
  if (getloadavg(&facts.load_average, 1) != 1) {
    facts.load_average = 0;
  }
  utsname names{};
  facts.kernel = uname(&names) == 0 ? names.release : "";
  return facts;
}

ClockFacts DescribeClock() {
  constexpr int kReads = 1000;
  ClockFacts facts;
  facts.source = "CLOCK_MONOTONIC";
  timespec resolution{};
  if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0) {
    facts.resolution_ns = resolution.tv_sec * 1'000'000'000 + resolution.tv_nsec;
  }
  const SystemClock clock;
  facts.read_ns = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReads; ++i) {
    const TimePoint before = clock.Now();
    const auto cost = std::chrono::nanoseconds(clock.Now() - before).count();
    facts.read_ns = std::min<int64_t>(facts.read_ns, cost);
  }
  facts.cpu_mhz = NumberIn(ReadFields("/proc/cpuinfo")["cpu MHz"]);
  return facts;
}

}  // namespace bouquet::bench
