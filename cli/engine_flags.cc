#include "cli/engine_flags.h"

namespace bouquet::cli {

void EngineFlags::AddTo(CLI::App& command) {
  AddFlag(command, "--device", device, "auto or cpu")->check(CLI::IsMember({"auto", "cpu"}));
  AddFlag(command, "--dtype", dtype,
          "auto (float32 on a CPU), float32 or bfloat16: of weights and activations")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  AddFlag(command, "--threads", threads,
          "computing threads; 0: as many as this process may use, counting quota and affinity")
      ->check(CLI::Range(0, 1024));
  AddFlag(
      command, "--step-tokens", step_tokens,
      "tokens that one engine step aims at; 0: from the speed measured at start. A longer input "
      "runs alone")
      ->check(CLI::Range(0, 1 << 20));
  AddFlag(command, "--max-batch-sequences", max_batch_sequences, "sequences of one engine step")
      ->check(CLI::Range(1, 65536));
}

rose::EngineOptions EngineFlags::Options() const {
  rose::EngineOptions options;
  options.device = device;
  options.dtype = dtype;
  options.threads = threads;
  options.max_step_tokens = step_tokens;
  options.max_step_sequences = max_batch_sequences;
  return options;
}

}  // namespace bouquet::cli
