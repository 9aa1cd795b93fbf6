#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load/machine.h"
#include "bench/load/server_facts.h"
#include "bench/load/summary.h"
#include "bench/load/vector_check.h"

namespace bouquet::bench {

/// All that a run leaves behind.
struct Report {
  std::string suite;
  std::string date;     // "2026-11-30T04:15:00Z"
  std::string version;  // of this program
  std::string commit;   // that this program was built from
  std::string command;
  std::string url;
  std::string protocol;  // "openai", "tei", "grpc"
  std::string inputs;    // "ids 1000..30521, seed 1" or the file of texts
  int32_t rounds = 0;
  double warm_up_seconds = 0;
  ServerFacts server;
  MachineFacts machine;
  ClockFacts clock;
  std::optional<CheckOutcome> check;  // none: vectors were not compared with anything
  std::vector<RowSummary> rows;

  bool complete() const;
};

/// The result file. Its form is named in its first member; docs/how_to_measure.md lists the fields.
std::string WriteJson(const Report& report);

/// For the terminal: a line per row, medians over rounds with least and most, failures below.
std::string WriteTable(const Report& report);

/// Writes through PATH.part, so that a file of that name is complete. Error: kPermissionDenied with
/// the system's reason.
Status WriteFile(const std::string& path, std::string_view content);

}  // namespace bouquet::bench
