#pragma once

#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

template <Activation kActivation>
__device__ __forceinline__ float Activate(float x) {
  switch (kActivation) {
    case Activation::kNone: return x;
    case Activation::kGelu: return 0.5F * x * (1.0F + erff(x * 0.70710678F));
    case Activation::kGeluTanh:
      return 0.5F * x * (1.0F + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
    case Activation::kRelu: return x > 0.0F || x != x ? x : 0.0F;
    case Activation::kSilu: return x / (1.0F + expf(-x));
    case Activation::kTanh: return tanhf(x);
    case Activation::kSigmoid: return 1.0F / (1.0F + expf(-x));
  }
  return x;
}

/// Calls `function` with the activation as a constant.
template <class Function>
void WithActivation(Activation activation, Function function) {
  switch (activation) {
    case Activation::kNone: return function.template operator()<Activation::kNone>();
    case Activation::kGelu: return function.template operator()<Activation::kGelu>();
    case Activation::kGeluTanh: return function.template operator()<Activation::kGeluTanh>();
    case Activation::kRelu: return function.template operator()<Activation::kRelu>();
    case Activation::kSilu: return function.template operator()<Activation::kSilu>();
    case Activation::kTanh: return function.template operator()<Activation::kTanh>();
    case Activation::kSigmoid: return function.template operator()<Activation::kSigmoid>();
  }
}

}  // namespace bouquet::rose::cuda
