#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load/client_processes.h"
#include "bench/load/reference.h"
#include "client/embed_client.h"

namespace bouquet::bench {

/// One input whose vector is compared.
struct CheckCase {
  std::string name;  // for people: "texts.txt, text 3"
  client::EmbedInput input;
};

/// How far the server's vectors are from the right ones.
struct CheckOutcome {
  std::string reference;  // file or URL
  size_t num_inputs = 0;
  double worst = 0;  // the largest 1 − cosine; infinite when a vector is no vector of that length
  std::string worst_input;
  double tolerance = 0;

  bool passed() const { return worst <= tolerance; }
};

/// Asks `server` for each case, one at a time, and compares with row i of `rows`, or with what
/// `reference_server` answers. Exactly one of the two is given. Error: the failure of a request,
/// naming the case.
Result<CheckOutcome> CheckVectors(const client::ClientOptions& server,
                                  const std::vector<CheckCase>& cases, const ReferenceRows* rows,
                                  const client::ClientOptions* reference_server,
                                  const ClientProcessHooks& hooks);

}  // namespace bouquet::bench
