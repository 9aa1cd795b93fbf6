#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "model/output_spec.h"
#include "rose/tensor/tensor.h"

// The ops of a forward pass as fused descriptors, in the order in which a forward pass meets them.
// A model file fills these and calls Backend, which fuses as much as it can.
//
// Everywhere: activations are [num_tokens, …] in the backend's compute dtype; sums of norms,
// softmax and pooling are f32; sizes must agree, and a mismatch is a bug (CHECK), never an error
// value.

namespace bouquet::rose {

enum class Activation : uint8_t {
  kNone,
  kGelu,      // x · Φ(x), exact (erf)
  kGeluTanh,  // the tanh approximation
  kRelu,
  kSilu,  // x · sigmoid(x)
  kTanh,
  kSigmoid,
};

/// The tokens that one row is pooled from, counted from the step's first token: begin .. end − 1 of
/// the sequence that starts at `first`. A whole sequence from its pooling start on, or one of its
/// spans.
struct PoolingRange {
  int32_t first = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

/// The inputs of a step in the backend's memory, and the sizes that the host knows too.
struct StepInputs {
  int32_t num_tokens = 0;
  int32_t num_sequences = 0;
  int32_t num_rows = 0;  // of results: num_sequences, unless some have spans
  int32_t longest_sequence = 0;
  const int32_t* token_ids = nullptr;            // [num_tokens]
  const int32_t* token_type_ids = nullptr;       // [num_tokens]; null when all are 0
  const int32_t* positions = nullptr;            // [num_tokens]
  const int32_t* sequence_offsets = nullptr;     // [num_sequences + 1]
  const PoolingRange* pooling_ranges = nullptr;  // [num_rows]
  const int32_t* dimensions = nullptr;           // [num_rows], 1..width, resolved
  const model::RowDtype* row_dtypes = nullptr;   // [num_rows]
  const uint8_t* normalize = nullptr;            // [num_rows], 0 or 1
};

/// Gain and bias of a norm, in f32 whatever the compute dtype. `bias` is empty for RMSNorm.
struct NormWeights {
  TensorView gain;  // [1, width] float32
  TensorView bias;  // [1, width] float32
  float epsilon = 0;
  bool empty() const { return gain.empty(); }
};

enum class NormKind : uint8_t { kNone, kLayerNorm, kRmsNorm };

/// out[t] = norm(word[id[t]] + position[pos[t] + position_offset] + type[type[t]]); absent tables
/// add nothing.
struct EmbeddingDesc {
  TensorView word;        // [vocabulary_rows, hidden_size]
  TensorView position;    // [position rows, hidden_size] or empty
  TensorView token_type;  // [token_types, hidden_size] or empty
  int32_t position_offset = 0;
  NormKind norm_kind = NormKind::kNone;
  NormWeights norm;
};

/// out = norm(x + residual) row by row; `residual` may be empty. `sum` (may be empty, may alias x
/// or residual) receives x + residual. `out` may alias x.
///   LayerNorm: (v − mean) / √(var + ε) · gain + bias       RMSNorm: v / √(mean(v²) + ε) · gain
struct NormDesc {
  NormKind kind = NormKind::kLayerNorm;
  NormWeights weights;
};

/// One weight matrix as files hold it: y = x·Wᵀ + b. Several sources are stacked along the output
/// (query, key, value in one product). The backend packs it as it likes; `activation` says what
/// will follow, so that it can be fused.
struct LinearDesc {
  std::vector<HostTensor> weights;  // each [out_features_i, in_features]
  std::vector<HostTensor> biases;   // empty, or one per weight: [1, out_features_i]
  /// For GLU layers: the stacked outputs are (gate, up) halves, and the product ends as act(gate) ·
  /// up.
  bool gated = false;
  Activation activation = Activation::kNone;

  int64_t in_features() const { return weights.front().cols; }
  int64_t out_features() const {  // before gating halves it
    int64_t total = 0;
    for (const HostTensor& weight : weights) {
      total += weight.rows;
    }
    return total;
  }
};

/// A weight in a backend's own layout. Opaque to models.
class PackedWeight {
 public:
  virtual ~PackedWeight() = default;
  int64_t in_features = 0;
  int64_t out_features = 0;  // width of what Gemm writes: already halved when gated
  int64_t bytes = 0;
};

/// out[M, out_features] = epilogue(prologue(x)[M, in_features] · Wᵀ + b), with
///   prologue: RMSNorm or LayerNorm of x when `prologue.weights` is set
///   epilogue: the activation (and gating) given at Pack, then + residual when `residual` is set
/// `out` may alias `residual` unless an activation was given, never x.
struct GemmDesc {
  const PackedWeight* weight = nullptr;
  NormDesc prologue{NormKind::kNone, {}};
  TensorView residual;  // [M, out_features] or empty
};

enum class AttentionMask : uint8_t { kBidirectional, kCausal };

/// Rotary embedding, half-split form: (x₁, x₂) → (x₁·cos − x₂·sin, x₂·cos + x₁·sin) with angle pos
/// · theta^(−2i/head_dim).
struct RopeDesc {
  bool enabled = false;
  float theta = 10000.0F;
};

/// What the distance of a key j from a query i adds to their score, per query head: a table over
/// j − i, where distances beyond ±max_distance count as ±max_distance.
struct RelativeBias {
  /// The outermost entries are repeated so often at both ends of a row that a kernel may load whole
  /// vectors there.
  static constexpr int32_t kMargin = 16;

  TensorView table;  // [num_heads, 2 · (max_distance + kMargin) + 1] float32, or empty
  bool empty() const { return table.empty(); }
  /// The column of distance 0.
  int32_t centre() const { return static_cast<int32_t>(table.cols / 2); }
  int32_t max_distance() const { return centre() - kMargin; }
  /// Where head 0 has distance 0, or null when empty. CHECKs the table's shape.
  const float* AtZero(int32_t num_heads) const {
    if (empty()) {
      return nullptr;
    }
    CHECK(table.dtype == Dtype::kFloat32);
    CHECK_EQ(table.rows, num_heads);
    CHECK_EQ(table.cols % 2, 1);
    CHECK_GE(max_distance(), 0);
    return table.as<const float>() + centre();
  }
};

/// Ragged attention over q, k, v lying side by side in one matrix: softmax(scale · q·kᵀ [+ relative
/// bias] [+ mask]) · v, within each sequence. Query head h reads kv head h / (num_heads /
/// num_kv_heads).
struct AttentionDesc {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 0;
  AttentionMask mask = AttentionMask::kBidirectional;
  int32_t window = 0;      // 0: whole sequence; w > 0: only |i − j| ≤ w
  NormWeights query_norm;  // RMSNorm per head before RoPE, or empty: [1, head_dim]
  NormWeights key_norm;
  RopeDesc rope;
  RelativeBias relative_bias;
};

enum class PoolingMode : uint8_t { kCls, kMax, kMean, kMeanSqrtLength, kWeightedMean, kLastToken };

/// One row per PoolingRange from its tokens, in f32 (models.md section 11.3 formulas):
///   cls h₀ of the sequence · max · mean Σh/n · mean_sqrt_len Σh/√n · weighted mean Σi·hᵢ/Σi, i
///   from 1 at the sequence's first token · last token of the range. Several modes are concatenated
///   in the order given.
struct PoolingDesc {
  std::span<const PoolingMode> modes;
};

}  // namespace bouquet::rose
