#pragma once

#include <span>

#include "base/status.h"
#include "rose/engine.h"

namespace bouquet::bench {

/// Reads NAME=VALUE arguments: threads, max_step_tokens, dtype, device, graphs, attention. What is
/// not named keeps the value it has in `options`. Error: kInvalidArgument naming the argument.
Status ReadEngineArguments(std::span<char* const> arguments, rose::EngineOptions* options);

}  // namespace bouquet::bench
