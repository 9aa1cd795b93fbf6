#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bouquet::rose::cpu {

/// Cores that this process may keep busy: the smaller of its affinity mask and its control group's
/// quota, rounded down, at least 1. Read once, at start.
int32_t UsableCores();

/// The quota in cores that control group files give, or 0 for none. Version 2: the content of
/// cpu.max ("200000 100000", "max 100000"). Version 1: cpu.cfs_quota_us and cpu.cfs_period_us.
double QuotaOfVersion2(std::string_view cpu_max);
double QuotaOfVersion1(std::string_view quota_us, std::string_view period_us);

/// The smallest quota on the way from this process's group up to the root, or 0 for none.
/// `root` is where control groups are mounted, `self` the content of /proc/self/cgroup.
double ControlGroupQuota(const std::string& root, std::string_view self);

}  // namespace bouquet::rose::cpu
