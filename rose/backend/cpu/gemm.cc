#include "rose/backend/cpu/gemm.h"

#include <algorithm>

namespace bouquet::rose::cpu {
namespace {

// A whole number of tiles of any instruction set; 120 rows of 384 floats are 184 KB.
constexpr int64_t kRowsPerBlock = 120;
// Enough tasks per worker that the last one does not make the others wait long.
constexpr int64_t kTasksPerWorker = 8;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void RunGemm(const GemmArgs& args, int64_t rows, int64_t num_panels, const Kernels& kernels,
             WorkerPool& pool) {
  if (rows == 0) {
    return;
  }
  // Blocks of equal size, in whole tiles; groups of panels as many as balance needs.
  const int64_t wanted_blocks = DivideUp(rows, kRowsPerBlock);
  const int64_t tile = kernels.tile_rows;
  const int64_t block_rows = DivideUp(DivideUp(rows, wanted_blocks), tile) * tile;
  const int64_t blocks = DivideUp(rows, block_rows);
  const int64_t wanted_groups = DivideUp(kTasksPerWorker * pool.size(), blocks);
  const int64_t group_panels = DivideUp(num_panels, std::min(wanted_groups, num_panels));
  const int64_t groups = DivideUp(num_panels, group_panels);
  pool.ForEachChunk(blocks * groups, [&](int64_t chunk, int32_t) {
    const int64_t row = chunk / groups * block_rows;
    const int64_t panel = chunk % groups * group_panels;
    kernels.gemm(args, row, std::min(row + block_rows, rows), panel,
                 std::min(panel + group_panels, num_panels));
  });
}

}  // namespace bouquet::rose::cpu
