#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace bouquet::rose::cpu {

/// The processors that this process may use (its affinity mask), in the order in which workers are
/// bound to them: see OnePerCoreFirst. Error: kInternal when the kernel does not tell.
Result<std::vector<int32_t>> UsableProcessors();

/// Sorts `processors` so that the first of each core come before those that share a core with one
/// of them, both ascending. Which ones share a core stands in
/// `root`/cpuN/topology/thread_siblings_list ("0,64", "0-1"); without such a file a processor
/// counts as a core of its own.
std::vector<int32_t> OnePerCoreFirst(std::vector<int32_t> processors, const std::string& root);

/// Binds a thread to one processor. Error: kInternal with the system's reason.
Status BindThread(pthread_t thread, int32_t processor);

}  // namespace bouquet::rose::cpu
