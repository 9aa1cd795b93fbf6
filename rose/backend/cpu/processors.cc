#include "rose/backend/cpu/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace bouquet::rose::cpu {
namespace {

/// The first number of a list like "0,64" or "2-3", which is the lowest; `otherwise` without one.
int32_t LowestOf(std::string_view list, int32_t otherwise) {
  int32_t lowest = 0;
  const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), lowest);
  return error == std::errc() ? lowest : otherwise;
}

/// The lowest processor that shares a core with this one.
int32_t CoreOf(int32_t processor, const std::string& root) {
  std::ifstream file(fmt::format("{}/cpu{}/topology/thread_siblings_list", root, processor));
  std::string list;
  std::getline(file, list);
  return LowestOf(list, processor);
}

std::string ReasonOf(int error) { return std::generic_category().message(error); }

}  // namespace

Result<std::vector<int32_t>> UsableProcessors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    return Internal(fmt::format("the processors that this process may use cannot be read: {}",
                                ReasonOf(errno)));
  }
  std::vector<int32_t> processors;
  for (int32_t processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &mask)) {
      processors.push_back(processor);
    }
  }
  return OnePerCoreFirst(std::move(processors), "/sys/devices/system/cpu");
}

std::vector<int32_t> OnePerCoreFirst(std::vector<int32_t> processors, const std::string& root) {
  std::ranges::sort(processors);
  std::set<int32_t> cores;
  std::vector<int32_t> ordered;
  std::vector<int32_t> siblings;
  for (const int32_t processor : processors) {
    const bool is_first = cores.insert(CoreOf(processor, root)).second;
    (is_first ? ordered : siblings).push_back(processor);
  }
  ordered.insert(ordered.end(), siblings.begin(), siblings.end());
  return ordered;
}

Status BindThread(pthread_t thread, int32_t processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (processor < 0 || processor >= CPU_SETSIZE) {
    return Internal(fmt::format("processors must be 0..{}: {}", CPU_SETSIZE - 1, processor));
  }
  CPU_SET(processor, &mask);
  if (const int error = pthread_setaffinity_np(thread, sizeof mask, &mask); error != 0) {
    return Internal(
        fmt::format("a thread cannot be bound to processor {}: {}", processor, ReasonOf(error)));
  }
  return {};
}

}  // namespace bouquet::rose::cpu
