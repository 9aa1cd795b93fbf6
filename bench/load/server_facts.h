#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "bench/load/client_processes.h"
#include "client/embed_client.h"

namespace bouquet::bench {

/// What a server says about itself; empty and 0 where it does not.
struct ServerFacts {
  std::string info;  // its /info, a JSON object as it came
  std::string model;
  std::string version;
  int64_t max_input_tokens = 0;
  int64_t vocabulary_rows = 0;
};

/// Asks for /info (Bouquet, text-embeddings-inference), then for /v1/models. Error: kUnavailable or
/// kDeadlineExceeded when nothing answers there; servers without these pages give empty facts.
Result<ServerFacts> AskServerFacts(const client::ClientOptions& server,
                                   const ClientProcessHooks& hooks);

/// Reads both pages; either may be empty. What is not JSON of the form is passed over.
ServerFacts ReadServerFacts(std::string_view info, std::string_view models);

}  // namespace bouquet::bench
