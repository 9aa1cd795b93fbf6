#pragma once

#include <cstdint>
#include <vector>

#include "rose/backend/cpu/cpu_memory.h"
#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/worker_pool.h"
#include "rose/backend/op_desc.h"

namespace bouquet::rose::cpu {

/// Ragged attention over all sequences of a step: first norms and rotates queries and keys in
/// place, then cuts the work into runs of queries per (sequence, kv head), which are equally long
/// where sequences are long, so that threads stay balanced. Owns scratch per worker and the table
/// of cosines and sines.
class AttentionRunner {
 public:
  /// What a step holds at most: sizes what Run allocates at its first call per shape.
  void Prepare(int32_t workers, int32_t max_tokens, int32_t max_sequences);
  /// Thread: worker 0, inside a step. Allocates only at the first call with a wider head, another
  /// rotary theta or a position beyond max_tokens.
  void Run(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv, TensorView out,
           const Kernels& kernels, WorkerPool& pool);

 private:
  struct RotaryTable {
    float theta = 0;
    int32_t head_dim = 0;
    int32_t positions = 0;
    std::vector<float> cosines;  // [positions][head_dim / 2]
    std::vector<float> sines;
  };
  /// What a worker's scratch holds packed: nothing when op is 0.
  struct PackedKeys {
    uint64_t op = 0;
    int32_t sequence = 0;
    int32_t kv_head = 0;
  };
  struct Worker {
    AlignedArray<float> memory;
    AttentionScratch scratch;
    PackedKeys packed;
  };
  /// A run of queries.
  struct Task {
    int32_t sequence = 0;
    int32_t kv_head = 0;
    int32_t query_begin = 0;
    int32_t query_end = 0;
  };

  void Rotate(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
              const Kernels& kernels, WorkerPool& pool);
  const RotaryTable& TableFor(const AttentionDesc& desc, int32_t positions);
  void NeedScratch(int32_t head_dim, int32_t group);
  void CutIntoTasks(const AttentionDesc& desc, const StepInputs& inputs, int32_t workers);

  int32_t max_tokens_ = 0;
  int32_t max_sequences_ = 0;
  int32_t scratch_head_dim_ = 0;
  int32_t scratch_states_ = 0;
  uint64_t op_ = 0;
  std::vector<Worker> workers_;
  std::vector<RotaryTable> tables_;
  std::vector<Task> tasks_;
};

}  // namespace bouquet::rose::cpu
