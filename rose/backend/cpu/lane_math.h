#pragma once

#include "rose/backend/cpu/lanes.h"
#include "rose/backend/op_desc.h"

// Elementwise functions over Lanes. Coefficients are minimax fits of our own (iteratively
// reweighted least squares in double precision); the errors stated are measured over float32 by
// conformance/activation_test.cc. A NaN stays a NaN.

namespace bouquet::rose::cpu {

/// coefficients[0] + coefficients[1]·x + …, by Horner's rule.
template <class V, int kCount>
BOUQUET_INLINE typename V::Float Polynomial(typename V::Float x,
                                            const float (&coefficients)[kCount]) {
  typename V::Float sum = V::Broadcast(coefficients[kCount - 1]);
#pragma GCC unroll 32
  for (int i = kCount - 2; i >= 0; --i) {
    sum = sum * x + coefficients[i];
  }
  return sum;
}

/// 2^x for x ≤ 0; 0 below −126. Relative error 3e-7. Softmax's share of a step is this function.
template <class V>
BOUQUET_INLINE typename V::Float Exp2NotPositive(typename V::Float x) {
  constexpr float kPolynomial[] = {1.00000012F,   0.693146944F,   0.240221202F,
                                   0.0555071309F, 0.00967554189F, 0.00132764713F};
  constexpr float kRounder = 12582912.0F;
  const typename V::Float shifted = x + kRounder;
  const typename V::Float fraction = x - (shifted - kRounder);
  const typename V::Float power = V::AsFloat((V::AsBits(shifted) << 23) + (127U << 23));
  const typename V::Float result = Polynomial<V>(fraction, kPolynomial) * power;
  return x < -126.0F ? V::Broadcast(0.0F) : result;
}

/// e^x; 0 below −87, infinity from 89 on. Relative error 2e-7.
template <class V>
BOUQUET_INLINE typename V::Float Exp(typename V::Float x) {
  // log2(e) in two parts, so that large |x| keep their last bits.
  constexpr float kLog2E = 1.44269502F;
  constexpr float kLog2ERest = 1.92596303e-8F;
  constexpr float kPolynomial[] = {1.0F,           0.69314718F,    0.240226462F,   0.0555032864F,
                                   0.00961848907F, 0.00133999309F, 0.000153458110F};
  constexpr float kRounder = 12582912.0F;
  const typename V::Float capped = V::Min(V::Broadcast(89.0F), x);
  const typename V::Float shifted = capped * kLog2E + kRounder;
  const typename V::Float whole = shifted - kRounder;
  const typename V::Float fraction = (capped * kLog2E - whole) + capped * kLog2ERest;
  // The integer is in the low bits of `shifted`. 2^128 does not fit a float's exponent, so that the
  // power is applied in two halves, each with its bias of 127.
  const typename V::Bits power = V::AsBits(shifted) - V::AsBits(V::Broadcast(kRounder)) + 254U;
  const typename V::Bits half = power >> 1;
  const typename V::Float low = V::AsFloat(half << 23);
  const typename V::Float high = V::AsFloat((power - half) << 23);
  const typename V::Float result = Polynomial<V>(fraction, kPolynomial) * low * high;
  return x < -87.0F ? V::Broadcast(0.0F) : result;
}

template <class V>
BOUQUET_INLINE typename V::Float Magnitude(typename V::Float x) {
  return V::AsFloat(V::AsBits(x) & 0x7FFFFFFFU);
}

/// x · Φ(x) = max(x, 0) − |x|·Φ(−|x|): the second term is a bump that a polynomial of degree 18 in
/// |x| fits to 2e-8 up to 5.6, behind which it stays below 6e-8. Absolute error 2e-7 · max(1, |x|);
/// one multiply-add per coefficient, no division and no exponential.
template <class V>
BOUQUET_INLINE typename V::Float Gelu(typename V::Float x) {
  constexpr float kLimit = 5.6F;
  constexpr float kBump[] = {0.00715435995F, -0.0549031533F, 0.181207746F,  -0.311354607F,
                             0.214562848F,   0.214911371F,   -0.633886456F, 0.530116975F,
                             0.0773007348F,  -0.546407223F,  0.375798702F,  0.150678962F,
                             -0.332701057F,  0.0558439679F,  0.137944892F,  -0.0494443811F,
                             -0.0301568992F, 0.0105581423F,  0.00277516735F};
  const typename V::Float u =
      V::Min(Magnitude<V>(x), V::Broadcast(kLimit)) * (2.0F / kLimit) - 1.0F;
  return V::Max(V::Broadcast(0.0F), x) - Polynomial<V>(u, kBump);
}

/// 1 / (1 + e^−x). Absolute error 2e-7.
template <class V>
BOUQUET_INLINE typename V::Float Sigmoid(typename V::Float x) {
  return 1.0F / (1.0F + Exp<V>(-x));
}

/// Absolute error 2e-7.
template <class V>
BOUQUET_INLINE typename V::Float Tanh(typename V::Float x) {
  const typename V::Float e = Exp<V>(-2.0F * Magnitude<V>(x));
  const typename V::Float positive = (1.0F - e) / (1.0F + e);
  return x < 0.0F ? -positive : positive;
}

template <class V, Activation kActivation>
BOUQUET_INLINE typename V::Float Activate(typename V::Float x) {
  if constexpr (kActivation == Activation::kGelu) {
    return Gelu<V>(x);
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    // x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))) = x · sigmoid(2 · that).
    return x * Sigmoid<V>(1.5957691F * (x + 0.044715F * x * x * x));
  } else if constexpr (kActivation == Activation::kRelu) {
    return V::Max(V::Broadcast(0.0F), x);
  } else if constexpr (kActivation == Activation::kSilu) {
    return x * Sigmoid<V>(x);
  } else if constexpr (kActivation == Activation::kTanh) {
    return Tanh<V>(x);
  } else if constexpr (kActivation == Activation::kSigmoid) {
    return Sigmoid<V>(x);
  } else {
    return x;
  }
}

}  // namespace bouquet::rose::cpu
