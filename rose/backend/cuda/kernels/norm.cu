#include "rose/backend/cuda/kernels/norm.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/block_reduce.cuh"
#include "rose/backend/cuda/device/vector_access.cuh"
#include "rose/backend/cuda/kernels/vector_width.h"

// One block a row: the row is read once, stays in registers, and is written once.

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 128;

/// A row in the registers of a block: thread t holds the kVec values from (t + i · kThreads) ·
/// kVec.
template <int kVec, int kItems>
struct Row {
  Values<kVec> items[kItems];

  template <class Function>  // (item, first column)
  __device__ __forceinline__ static void ForEach(int64_t width, Function function) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int column = (static_cast<int>(threadIdx.x) + i * kThreads) * kVec;
      if (column < width) {
        function(i, column);
      }
    }
  }

  __device__ __forceinline__ void Normalise(NormKind kind, int64_t width, const float* gain,
                                            const float* bias, float epsilon, __nv_bfloat16* out) {
    __shared__ float shared[kThreads / 32];
    float total = 0;
    ForEach(width, [&](int i, int) {
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        const float value = items[i].at[k];
        total += kind == NormKind::kRmsNorm ? value * value : value;
      }
    });
    total = BlockSum<kThreads>(total, shared);
    float mean = 0;
    float variance = total / static_cast<float>(width);
    if (kind == NormKind::kLayerNorm) {
      mean = variance;
      float squares = 0;
      ForEach(width, [&](int i, int) {
#pragma unroll
        for (int k = 0; k < kVec; ++k) {
          const float centred = items[i].at[k] - mean;
          squares += centred * centred;
        }
      });
      variance = BlockSum<kThreads>(squares, shared) / static_cast<float>(width);
    }
    const float scale = 1.0F / sqrtf(variance + epsilon);
    ForEach(width, [&](int i, int column) {
      const Values<kVec> gains = Load<kVec>(gain + column);
      Values<kVec> y;
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        y.at[k] = (items[i].at[k] - mean) * scale * gains.at[k];
      }
      if (bias != nullptr) {
        const Values<kVec> biases = Load<kVec>(bias + column);
#pragma unroll
        for (int k = 0; k < kVec; ++k) {
          y.at[k] += biases.at[k];
        }
      }
      Store<kVec>(out + column, y);
    });
  }
};

template <int kVec>
__device__ __forceinline__ void Add(Values<kVec>* sum, const Values<kVec>& more) {
#pragma unroll
  for (int k = 0; k < kVec; ++k) {
    sum->at[k] += more.at[k];
  }
}

template <int kVec, int kItems>
__global__ void __launch_bounds__(kThreads) NormKernel(NormArgs args) {
  const int64_t row = blockIdx.x;
  Row<kVec, kItems> values;
  Row<kVec, kItems>::ForEach(args.width, [&](int i, int column) {
    values.items[i] = Load<kVec>(args.x + row * args.x_stride + column);
    if (args.residual != nullptr) {
      Add(&values.items[i], Load<kVec>(args.residual + row * args.residual_stride + column));
    }
    if (args.sum != nullptr) {
      Store<kVec>(args.sum + row * args.sum_stride + column, values.items[i]);
    }
  });
  values.Normalise(args.kind, args.width, args.gain, args.bias, args.epsilon,
                   args.out + row * args.out_stride);
}

template <int kVec, int kItems>
__global__ void __launch_bounds__(kThreads) EmbedKernel(EmbedArgs args) {
  const int64_t token = blockIdx.x;
  const __nv_bfloat16* word = args.word + int64_t{args.token_ids[token]} * args.width;
  const __nv_bfloat16* position =
      args.position == nullptr
          ? nullptr
          : args.position + (int64_t{args.positions[token]} + args.position_offset) * args.width;
  const int64_t type = args.token_type_ids == nullptr ? 0 : args.token_type_ids[token];
  const __nv_bfloat16* token_type =
      args.token_type == nullptr ? nullptr : args.token_type + type * args.width;
  __nv_bfloat16* out = args.out + token * args.out_stride;
  Row<kVec, kItems> values;
  Row<kVec, kItems>::ForEach(args.width, [&](int i, int column) {
    values.items[i] = Load<kVec>(word + column);
    if (position != nullptr) {
      Add(&values.items[i], Load<kVec>(position + column));
    }
    if (token_type != nullptr) {
      Add(&values.items[i], Load<kVec>(token_type + column));
    }
    if (args.kind == NormKind::kNone) {
      Store<kVec>(out + column, values.items[i]);
    }
  });
  if (args.kind != NormKind::kNone) {
    values.Normalise(args.kind, args.width, args.gain, args.bias, args.epsilon, out);
  }
}

/// Calls `function` with how many values a thread reads at a time and how often it does so.
template <class Function>
void WithRowShape(bool vectorised, int64_t width, Function function) {
  CHECK_LE(width, kMaxNormWidth);
  if (vectorised) {
    if (width <= 8 * kThreads) {
      function.template operator()<8, 1>();
    } else if (width <= 4 * 8 * kThreads) {
      function.template operator()<8, 4>();
    } else {
      function.template operator()<8, 8>();
    }
  } else if (width <= 4 * kThreads) {
    function.template operator()<1, 4>();
  } else {
    function.template operator()<1, kMaxNormWidth / kThreads>();
  }
}

}  // namespace

void LaunchNorm(const NormArgs& args, cudaStream_t stream) {
  const bool vectorised = IsVectorised(
      {args.width, args.x_stride, args.residual_stride, args.sum_stride, args.out_stride},
      {args.x, args.residual, args.sum, args.out});
  WithRowShape(vectorised, args.width, [&]<int kVec, int kItems>() {
    NormKernel<kVec, kItems><<<static_cast<unsigned>(args.rows), kThreads, 0, stream>>>(args);
  });
  CUDA_CHECK(cudaGetLastError());
}

void LaunchEmbed(const EmbedArgs& args, cudaStream_t stream) {
  const bool vectorised = IsVectorised({args.width, args.out_stride},
                                       {args.word, args.position, args.token_type, args.out});
  WithRowShape(vectorised, args.width, [&]<int kVec, int kItems>() {
    EmbedKernel<kVec, kItems><<<static_cast<unsigned>(args.tokens), kThreads, 0, stream>>>(args);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
