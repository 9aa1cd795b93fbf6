#include "rose/backend/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace bouquet::rose::cpu {
namespace {

// A whole number of tiles of any instruction set. 128 rows of 384 floats are 196 KB.
constexpr int64_t kRowsPerBlock = 120;
// Enough tasks per worker that the last one does not make the others wait long.
constexpr int64_t kTasksPerWorker = 8;
// Rows this far apart, or a multiple, fall into the same sets of the first-level cache, and the
// rows of a tile push each other out: 1024 floats are 40 % slower than 1040.
constexpr int64_t kConflictBytes = 2048;
constexpr int64_t kPadBytes = 64;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The same product from row `row` on.
GemmArgs FromRow(GemmArgs args, int64_t row, int64_t element_bytes) {
  args.x = static_cast<const std::byte*>(args.x) + row * args.x_stride * element_bytes;
  args.out = static_cast<std::byte*>(args.out) + row * args.out_stride * element_bytes;
  if (args.residual != nullptr) {
    args.residual =
        static_cast<const std::byte*>(args.residual) + row * args.residual_stride * element_bytes;
  }
  return args;
}

}  // namespace

void GemmRunner::Run(const GemmArgs& args, int64_t rows, int64_t num_panels, int64_t element_bytes,
                     const Kernels& kernels, WorkerPool& pool) {
  ++op_;
  const int64_t blocks = DivideUp(rows, kRowsPerBlock);
  const int64_t tile = kernels.tile_rows;
  // Blocks of equal size, in whole tiles.
  const int64_t block_rows = blocks == 0 ? tile : DivideUp(DivideUp(rows, blocks), tile) * tile;
  const int64_t wanted_groups =
      DivideUp(kTasksPerWorker * pool.size(), std::max<int64_t>(blocks, 1));
  const int64_t group_panels = DivideUp(num_panels, std::min(wanted_groups, num_panels));
  const int64_t groups = DivideUp(num_panels, group_panels);

  const int64_t stride_bytes = args.x_stride * element_bytes;
  const bool copies = stride_bytes % kConflictBytes == 0 && rows > 1;
  const int64_t copy_stride = args.in_features + kPadBytes / element_bytes;
  if (copies && block_rows * copy_stride * element_bytes > block_bytes_) {
    block_bytes_ = kRowsPerBlock * copy_stride * element_bytes;
    for (Worker& worker : workers_) {
      worker.block = MakeAlignedArray<std::byte>(static_cast<size_t>(block_bytes_));
      CHECK(worker.block != nullptr);
      worker.op = 0;
    }
  }
  pool.ForEachChunk(DivideUp(rows, block_rows) * groups, [&](int64_t chunk, int32_t worker) {
    const int64_t row_begin = chunk / groups * block_rows;
    const int64_t row_end = std::min(row_begin + block_rows, rows);
    const int64_t panel_begin = chunk % groups * group_panels;
    const int64_t panel_end = std::min(panel_begin + group_panels, num_panels);
    if (!copies) {
      kernels.gemm(args, row_begin, row_end, panel_begin, panel_end);
      return;
    }
    GemmArgs block = FromRow(args, row_begin, element_bytes);
    block.x = CopyBlock(args, row_begin, row_end, copy_stride, element_bytes,
                        &workers_[static_cast<size_t>(worker)]);
    block.x_stride = copy_stride;
    kernels.gemm(block, 0, row_end - row_begin, panel_begin, panel_end);
  });
}

const std::byte* GemmRunner::CopyBlock(const GemmArgs& args, int64_t row_begin, int64_t row_end,
                                       int64_t copy_stride, int64_t element_bytes,
                                       Worker* worker) const {
  if (worker->op != op_ || worker->row_begin != row_begin) {
    const auto* x = static_cast<const std::byte*>(args.x);
    for (int64_t row = row_begin; row < row_end; ++row) {
      std::memcpy(worker->block.get() + (row - row_begin) * copy_stride * element_bytes,
                  x + row * args.x_stride * element_bytes,
                  static_cast<size_t>(args.in_features * element_bytes));
    }
    worker->op = op_;
    worker->row_begin = row_begin;
  }
  return worker->block.get();
}

}  // namespace bouquet::rose::cpu
