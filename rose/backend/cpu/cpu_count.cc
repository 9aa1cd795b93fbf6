#include "rose/backend/cpu/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <thread>

namespace bouquet::rose::cpu {
namespace {

/// The first whole number of `text` from `*position` on; advances past it. 0 when there is none.
int64_t ReadNumber(std::string_view text, size_t* position) {
  while (*position < text.size() && text[*position] == ' ') {
    ++*position;
  }
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data() + *position, text.data() + text.size(), value);
  if (error != std::errc()) {
    return 0;
  }
  *position = static_cast<size_t>(end - text.data());
  return value;
}

double Ratio(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

double Smaller(double a, double b) {
  if (a == 0 || b == 0) {
    return std::max(a, b);
  }
  return std::min(a, b);
}

double QuotaOfFolder(const std::string& folder) {
  return Smaller(QuotaOfVersion2(ReadFile(folder + "/cpu.max")),
                 QuotaOfVersion1(ReadFile(folder + "/cpu.cfs_quota_us"),
                                 ReadFile(folder + "/cpu.cfs_period_us")));
}

}  // namespace

double QuotaOfVersion2(std::string_view cpu_max) {
  size_t position = 0;
  const int64_t quota = ReadNumber(cpu_max, &position);  // "max" reads as 0
  const int64_t period = ReadNumber(cpu_max, &position);
  return Ratio(quota, period);
}

double QuotaOfVersion1(std::string_view quota_us, std::string_view period_us) {
  size_t quota_position = 0;
  size_t period_position = 0;
  return Ratio(ReadNumber(quota_us, &quota_position), ReadNumber(period_us, &period_position));
}

double ControlGroupQuota(const std::string& root, std::string_view self) {
  double quota = 0;
  std::stringstream lines{std::string(self)};
  for (std::string line; std::getline(lines, line);) {
    // "0::/group" in version 2, "4:cpu,cpuacct:/group" in version 1.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_version_2 = controllers.empty();
    if (!is_version_2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) {
      continue;
    }
    const std::string mount = is_version_2 ? root : root + "/cpu";
    std::string group = line.substr(second + 1);
    // A container often sees its own group at the mount's root, whatever the path says: both are
    // read, and absent files give no quota.
    while (!group.empty() && group != "/") {
      quota = Smaller(quota, QuotaOfFolder(mount + group));
      const size_t slash = group.rfind('/');
      group.resize(slash == std::string::npos ? 0 : slash);
    }
    quota = Smaller(quota, QuotaOfFolder(mount));
  }
  return quota;
}

int32_t UsableCores() {
  int32_t cores = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0) {
    cores = std::min(cores, static_cast<int32_t>(CPU_COUNT(&mask)));
  }
  const double quota = ControlGroupQuota("/sys/fs/cgroup", ReadFile("/proc/self/cgroup"));
  if (quota > 0) {
    cores = std::min(cores, static_cast<int32_t>(quota));
  }
  return std::max(cores, 1);
}

}  // namespace bouquet::rose::cpu
