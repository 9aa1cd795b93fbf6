#pragma once

#include <cuda_bf16.h>

#include <cstdint>

// The instructions of a tensor-core tile on one warp, named after what they do (PTX ISA, "Matrix
// fragments for mma.m16n8k16"). Fragment layout, lane = 4 · g + t:
//   A [16 rows, 16 k]: a0 (g, 2t..) a1 (g + 8, 2t..) a2 (g, 2t + 8..) a3 (g + 8, 2t + 8..)
//   B [16 k, 8 columns]: b0 (2t.., g) b1 (2t + 8.., g)
//   C [16 rows, 8 columns]: c0, c1 (g, 2t..) c2, c3 (g + 8, 2t..)

namespace bouquet::rose::cuda {

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes from global to shared memory, or writes zeros there without reading.
__device__ __forceinline__ void CopyOrZero16(uint32_t to, const void* from, bool copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(copy ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `kPending` of the groups that this thread committed are under way.
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Four 8 × 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void LoadMatrices(uint32_t (&to)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row_address)
               : "memory");
}
__device__ __forceinline__ void LoadTransposedMatrices(uint32_t (&to)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row_address)
               : "memory");
}

/// c += a · b
__device__ __forceinline__ void MultiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t PackBf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

/// 2^x to about 2 ulp; 2^(−inf) = 0.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace bouquet::rose::cuda
