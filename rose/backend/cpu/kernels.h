#pragma once

#include <cstdint>

#include "rose/backend/cpu/cpu_features.h"
#include "rose/backend/op_desc.h"
#include "rose/tensor/dtype.h"

// The kernels: plain structs of pointers and sizes in, one thread, one range of the work. Strides
// are in elements. Pointers to activations are of the table's dtype (float32 or bfloat16) unless
// typed. Checks, splitting between threads and scratch memory are the callers' (norm.cc, gemm.cc,
// …).

namespace bouquet::rose::cpu {

struct NormArgs {
  const void* x = nullptr;  // [rows, width]
  int64_t x_stride = 0;
  const void* residual = nullptr;  // [rows, width] or null
  int64_t residual_stride = 0;
  void* sum = nullptr;  // [rows, width] or null
  int64_t sum_stride = 0;
  void* out = nullptr;  // [rows, width]
  int64_t out_stride = 0;
  int64_t width = 0;
  NormKind kind = NormKind::kNone;
  const float* gain = nullptr;  // [width]
  const float* bias = nullptr;  // [width] or null
  float epsilon = 0;
};

struct EmbedArgs {
  const int32_t* token_ids = nullptr;       // [num_tokens]
  const int32_t* positions = nullptr;       // [num_tokens]
  const int32_t* token_type_ids = nullptr;  // [num_tokens] or null: all 0
  const void* word = nullptr;               // [vocabulary_rows, width]
  const void* position = nullptr;           // [position rows, width] or null
  const void* token_type = nullptr;         // [token_types, width] or null
  int64_t word_stride = 0;
  int64_t position_stride = 0;
  int64_t token_type_stride = 0;
  int32_t position_offset = 0;
  NormArgs norm;  // out, width, kind and weights are used
};

/// Weights are packed in panels of kPanelColumns = 2 · lanes output columns, see packed_linear.h.
struct GemmArgs {
  const void* x = nullptr;  // [rows, in_features]
  int64_t x_stride = 0;
  const void* panels = nullptr;  // [num_panels][in_features][panel columns]
  const float* bias = nullptr;   // [num_panels][panel columns] or null
  const void* residual = nullptr;
  int64_t residual_stride = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
  int64_t in_features = 0;
  int64_t out_features = 0;  // after gating
  Activation activation = Activation::kNone;
  bool gated = false;
};

/// Norm per head and rotary embedding of queries and keys, in place.
struct RotateArgs {
  void* qkv = nullptr;  // [num_tokens, …], queries first, then keys
  int64_t qkv_stride = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  const float* query_gain = nullptr;  // [head_dim] or null
  const float* key_gain = nullptr;
  float query_epsilon = 0;
  float key_epsilon = 0;
  const int32_t* positions = nullptr;  // [num_tokens]
  const float* cosines = nullptr;      // [positions][head_dim / 2] or null: no rotary embedding
  const float* sines = nullptr;
};

/// Scratch of one thread; sizes in attention.h.
struct AttentionScratch {
  float* keys = nullptr;     // [head_dim][key block], transposed
  float* values = nullptr;   // [key block][padded head_dim]
  float* queries = nullptr;  // [query block][head_dim], scaled
  float* scores = nullptr;   // [tile rows][key block + pad]
  float* sums = nullptr;     // [query block][padded head_dim], not yet divided
  float* maxima = nullptr;   // [query block]
  float* weights = nullptr;  // [query block], sums of exp
};

/// A run of queries of one kv head's group in one sequence.
struct AttentionArgs {
  const void* qkv = nullptr;  // the sequence's first token
  int64_t qkv_stride = 0;
  void* out = nullptr;  // the sequence's first token
  int64_t out_stride = 0;
  int32_t length = 0;  // of the sequence
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t kv_head = 0;
  int32_t query_begin = 0;
  int32_t query_end = 0;
  float scale = 0;
  bool causal = false;
  int32_t window = 0;
  /// RelativeBias::table at head 0 and distance 0, or null; a row per head.
  const float* relative_bias = nullptr;
  int64_t relative_bias_stride = 0;
  int32_t max_distance = 0;
  /// Scratch already holds this sequence's only key block for this kv head.
  bool keys_are_packed = false;
  AttentionScratch scratch;
};

struct PoolArgs {
  const void* hidden = nullptr;  // the sequence's first token: [length, width]
  int64_t hidden_stride = 0;
  int32_t length = 0;
  int32_t start = 0;  // first token that counts
  int64_t width = 0;
  PoolingMode mode = PoolingMode::kMean;
  float* out = nullptr;  // [width]
};

/// What is compiled once per instruction set and dtype.
struct Kernels {
  int32_t panel_columns = 0;  // of GemmArgs::panels
  int32_t tile_rows = 0;      // rows that a GEMM tile holds in registers

  void (*norm)(const NormArgs& args, int64_t row_begin, int64_t row_end, float* scratch) = nullptr;
  void (*embed)(const EmbedArgs& args, int64_t token_begin, int64_t token_end,
                float* scratch) = nullptr;
  void (*gemm)(const GemmArgs& args, int64_t row_begin, int64_t row_end, int64_t panel_begin,
               int64_t panel_end) = nullptr;
  void (*rotate)(const RotateArgs& args, int64_t token_begin, int64_t token_end) = nullptr;
  void (*attention)(const AttentionArgs& args) = nullptr;
  void (*pool)(const PoolArgs& args) = nullptr;
};

/// dtype: kFloat32 or kBfloat16. The set must be one that this processor has.
const Kernels& KernelsFor(Isa isa, Dtype dtype);

// One file each, with compiler flags of its own.
const Kernels& PlainKernels(Dtype dtype);
const Kernels& Avx2Kernels(Dtype dtype);
const Kernels& Avx512Kernels(Dtype dtype);
const Kernels& Avx512Bf16Kernels(Dtype dtype);

}  // namespace bouquet::rose::cpu
