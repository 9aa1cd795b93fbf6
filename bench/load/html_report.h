#pragma once

#include <string>

#include "bench/load/report.h"

namespace bouquet::bench {

/// The report as one page that needs nothing else: tables, and plots as inline SVG (latency by
/// percentile for each row; answers and p99 over time for open loops).
std::string WriteHtml(const Report& report);

}  // namespace bouquet::bench
