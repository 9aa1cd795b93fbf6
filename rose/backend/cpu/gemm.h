#pragma once

#include <cstdint>

#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/worker_pool.h"

namespace bouquet::rose::cpu {

/// Shares a product of `rows` rows and `num_panels` panels out between the workers: blocks of rows
/// that stay in the second-level cache, times groups of panels. Few rows are shared out by panels
/// alone, so that each weight is streamed once. Thread: worker 0, inside a step.
void RunGemm(const GemmArgs& args, int64_t rows, int64_t num_panels, const Kernels& kernels,
             WorkerPool& pool);

}  // namespace bouquet::rose::cpu
