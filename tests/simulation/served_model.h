#pragma once

#include <cstdint>
#include <string>

namespace bouquet::simulation {

/// What a process serves when it is started.
struct ServedModel {
  std::string identity = "ours";
  std::string fingerprint = "numerics-1";
  int32_t max_input_tokens = 0;

  bool is_ours() const { return identity == "ours"; }
};

}  // namespace bouquet::simulation
