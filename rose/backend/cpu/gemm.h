#pragma once

#include <cstdint>
#include <vector>

#include "rose/backend/cpu/cpu_memory.h"
#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/packed_linear.h"
#include "rose/backend/cpu/worker_pool.h"

namespace bouquet::rose::cpu {

/// Shares a product out between the workers: blocks of rows that stay in the second-level cache,
/// times groups of panels. Few rows are shared out by panels alone, so that each weight is streamed
/// once.
class GemmRunner {
 public:
  void Prepare(int32_t workers) { workers_.resize(static_cast<size_t>(workers)); }

  /// Thread: worker 0, inside a step. `rows` of args.x and args.out, `element_bytes` of their
  /// dtype. Allocates only at the first call with wider rows than before.
  void Run(const GemmArgs& args, int64_t rows, int64_t num_panels, int64_t element_bytes,
           const Kernels& kernels, WorkerPool& pool);

 private:
  /// A block of rows copied to rows of a friendlier distance.
  struct Worker {
    AlignedArray<std::byte> block;
    uint64_t op = 0;  // which product's rows it holds: none when 0
    int64_t row_begin = 0;
  };

  const std::byte* CopyBlock(const GemmArgs& args, int64_t row_begin, int64_t row_end,
                             int64_t copy_stride, int64_t element_bytes, Worker* worker) const;

  uint64_t op_ = 0;
  int64_t block_bytes_ = 0;
  std::vector<Worker> workers_;
};

}  // namespace bouquet::rose::cpu
