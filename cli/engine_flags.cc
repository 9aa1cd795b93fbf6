#include "cli/engine_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "ivy/config.h"

namespace bouquet::cli {
namespace {

bool IsDevice(std::string_view name) {
  if (name == "auto" || name == "cpu" || name == "cuda") {
    return true;
  }
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) {
    return false;
  }
  name.remove_prefix(kPrefix.size());
  uint16_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  return error == std::errc() && end == name.data() + name.size();
}

CLI::Validator DeviceName() {
  return CLI::Validator(
      [](const std::string& name) {
        return IsDevice(name)
                   ? std::string()
                   : fmt::format("must be auto, cpu, cuda or cuda:N with N from 0: {}", name);
      },
      "{auto,cpu,cuda,cuda:N}");
}

CLI::Validator Fraction() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && end == text.data() + text.size();
        return is_number && value > 0 && value <= 1
                   ? std::string()
                   : fmt::format("must be over 0 and at most 1: {}", text);
      },
      "FLOAT over 0, at most 1");
}

}  // namespace

void EngineFlags::AddTo(CLI::App& command) {
  AddFlag(command, "--device", device,
          "auto: the first CUDA device that can be used, where this binary was built with CUDA, "
          "else the CPU; cpu; cuda or cuda:N: that device, or an error")
      ->check(DeviceName());
  AddFlag(command, "--dtype", dtype,
          "of weights and activations: float32 or bfloat16; auto: float32 on a CPU, bfloat16 on a "
          "CUDA device, which computes in no other")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  AddFlag(command, "--threads", threads,
          "computing threads of a CPU; 0: as many as this process may use, counting quota and "
          "affinity")
      ->check(CLI::Range(0, 1024));
  AddFlag(command, "--pin-threads", pin_threads,
          "CPU: binds each computing thread to a processor of its own, of those that this process "
          "may use, one per core first. For a machine that computes nothing else");
  AddFlag(
      command, "--step-tokens", step_tokens,
      "tokens that one engine step aims at; 0: from the speed measured at start. A longer input "
      "runs alone")
      ->check(CLI::Range(0, 1 << 20));
  AddFlag(command, "--max-batch-sequences", max_batch_sequences, "sequences of one engine step")
      ->check(CLI::Range(1, 65536));
  AddFlag(command, "--graphs", graphs,
          "CUDA: when a forward pass becomes one graph launch. lazy: when steps of its padded size "
          "come for the second time; startup: all usual sizes while loading; off: never")
      ->check(CLI::IsMember({"lazy", "startup", "off"}));
  AddFlag(command, "--attention", attention,
          "CUDA: whose attention kernels run. auto: the fastest for each step as measured; own, "
          "fa2, fa3: only these, for comparing")
      ->check(CLI::IsMember({"auto", "own", "fa2", "fa3"}));
  AddFlag(command, "--memory-fraction", memory_fraction,
          "CUDA: how much of the device's memory this process may take")
      ->check(Fraction());
}

rose::EngineOptions EngineFlags::Options() const {
  rose::EngineOptions options;
  options.device = device;
  options.dtype = dtype;
  options.threads = threads;
  options.pin_threads = pin_threads;
  options.max_step_tokens = step_tokens;
  options.max_step_sequences = max_batch_sequences;
  options.graphs = graphs;
  options.attention = attention;
  options.memory_fraction = memory_fraction;
  return options;
}

Status EngineFlags::CheckReload(const EngineFlags& next) const {
  return ivy::NeedsNoRestart({
      {"--device", device == next.device},
      {"--dtype", dtype == next.dtype},
      {"--threads", threads == next.threads},
      {"--pin-threads", pin_threads == next.pin_threads},
      {"--step-tokens", step_tokens == next.step_tokens},
      {"--max-batch-sequences", max_batch_sequences == next.max_batch_sequences},
      {"--graphs", graphs == next.graphs},
      {"--attention", attention == next.attention},
      {"--memory-fraction", memory_fraction == next.memory_fraction},
  });
}

ExitCode ExitOfLoading(const Status& status) {
  // The fields of rose::EngineOptions.
  constexpr std::array<std::string_view, 9> kFields = {
      "device",      "dtype",           "threads",
      "pin_threads", "max_step_tokens", "max_step_sequences",
      "graphs",      "attention",       "memory_fraction"};
  return std::ranges::find(kFields, status.field()) == kFields.end() ? ExitCode::kModel
                                                                     : ExitCode::kUsage;
}

}  // namespace bouquet::cli
