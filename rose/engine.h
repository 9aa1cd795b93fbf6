#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/graph_cache.h"
#include "rose/lazy_tensor.h"

namespace bouquet::rose {

struct EngineOptions {
  std::string device = "auto";  // auto | cpu | cuda | cuda:N; see CreateBackend
  std::string dtype = "auto";   // auto | float32 | bfloat16; auto is float32 on a CPU, bfloat16 on
                                // a CUDA device
  int32_t threads =
      0;  // CPU workers, the step worker included; 0 counts the cores this process may use
  bool pin_threads = false;  // CPU: each worker to a processor of its own
  int32_t max_step_tokens =
      0;  // largest step that will be asked for, 0 for the model's longest input or 1024
  int32_t max_step_sequences = 512;
  // Of a CUDA device:
  std::string graphs = "lazy";     // lazy | startup | off: when steps are captured, see GraphMode
  std::string attention = "auto";  // or the name of one kernel for everything
  double memory_fraction = 0.9;    // of the device's memory, at most
};

/// Facts about a loaded engine. Fixed from Load on.
struct EngineInfo {
  std::string device;                // "cpu"
  std::string device_description;    // "cpu, 2 threads, avx512_bf16"
  std::string dtype;                 // "float32"
  std::string numerics_fingerprint;  // changes when dtype, kernels or version change: vectors may
                                     // differ in their last bits
  BatchLimits limits;
  int32_t steps_under_way = 1;  // how many LazyTensors may be alive at once
  int64_t weight_bytes = 0;
};

/// A model on a device. In: Batch. Out: LazyTensor. Knows no network, no text and no request.
class Engine {
 public:
  /// Reads weights, packs them, allocates everything that a step needs and runs one step to warm
  /// up. Error: kNotFound or kInvalidArgument naming file and tensor; kUnimplemented for what this
  /// engine does not serve.
  static Result<std::unique_ptr<Engine>> Load(const model::ModelFolder& folder,
                                              const EngineOptions& options);
  ~Engine();

  /// Starts a step and returns at once; never waits. The batch is copied. At most `steps_under_way`
  /// LazyTensors may be alive. A batch that breaks `limits` gives a LazyTensor that waits to
  /// kInvalidArgument. Thread: one at a time.
  LazyTensor Step(const Batch& batch);

  const EngineInfo& info() const;

  /// Of a device that captures steps, else zeros. Thread: any.
  GraphCounts graph_counts() const;
  /// Tokens that a step of these sizes computes: more than `num_tokens` on a device that pads steps
  /// to the sizes of rose/step_grid.h. Thread: any.
  int32_t PaddedTokens(int32_t num_tokens, int32_t num_sequences) const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bouquet::rose
