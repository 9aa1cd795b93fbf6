#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace bouquet::model {

enum class Architecture : uint8_t {
  kBert,     // absolute positions, token types, LayerNorm after each block, GELU
  kRoberta,  // the same, but positions start behind the row of the padding token; XLM-RoBERTa too
  kMpnet,    // as RoBERTa, without token types and with a bias by distance on attention's scores
  kDistilBert,  // BERT without token types
  kQwen3,       // RMSNorm before each block, RMSNorm per head on q and k, RoPE, grouped-query
                // attention, SwiGLU
};

std::string_view ArchitectureName(Architecture architecture);

/// config.json as numbers: everything that decides the shape of the network. Field names follow the
/// file's, or BERT's where families name the same thing differently.
struct Traits {
  Architecture architecture = Architecture::kBert;
  std::string class_name;  // architectures[0], or empty
  int32_t num_hidden_layers = 0;
  int32_t hidden_size = 0;
  int32_t num_attention_heads = 0;
  int32_t num_key_value_heads = 0;  // = num_attention_heads without grouping
  int32_t head_dim = 0;             // not always hidden_size / heads: Qwen3 states it
  int32_t intermediate_size = 0;
  int32_t vocabulary_rows = 0;  // rows of the embedding table
  int32_t position_rows = 0;    // rows of the position table; 0: the family has none
  // The row of a sequence's first token; token i reads row position_offset + i. RoBERTa starts
  // behind the padding token's row: pad_token_id + 1. (A padding token inside a sequence takes a
  // position like any other; the reference library skips it.)
  int32_t position_offset = 0;
  int32_t max_positions = 0;  // longest sequence: its positions are 0 .. max_positions - 1
  int32_t token_types = 0;    // 0: the family has none
  // Rows of MPNet's table of biases by distance; 0: the family has none.
  int32_t relative_attention_buckets = 0;
  std::string hidden_act;  // as written: "gelu", "silu", …
  float norm_epsilon = 0;
  float rope_theta = 0;         // 0: no rotary embedding
  bool causal = false;          // Qwen3 unless the config says bidirectional
  bool attention_bias = false;  // Qwen3: biases on q, k, v, o
  std::string torch_dtype;      // of the stored weights, for `bouquet info`; may be empty
};

/// Reads config.json. Error: kInvalidArgument naming the key; kUnimplemented naming a model_type
/// that is not served.
Result<Traits> ParseTraits(const JsonObject& config);

}  // namespace bouquet::model
