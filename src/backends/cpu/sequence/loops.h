// Loops over the rows of sequence values, as those of simd/loops.h: T is float, Bfloat16 or Half, computed with as floats. One
// thread each; callers split the work.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

enum class Activation : std::uint8_t { gelu, gelu_by_tanh, silu, sigmoid };

template <typename T>
struct ActivationLoops {
  void (*apply)(Activation which, const T* x, T* y, std::int64_t count);
  // dx = addend + dy * the slope at x, rounded before it is added; no addend when null.
  void (*gradient)(Activation which, const T* dy, const T* x, const T* addend, T* dx, std::int64_t count);
  // One row: activation(x[:count]) * x[count:], and its gradient, which has 2 * count columns.
  void (*gate)(Activation which, const T* x, T* y, std::int64_t count);
  void (*gate_gradient)(Activation which, const T* dy, const T* x, T* dx, std::int64_t count);
};
template <typename T>
const ActivationLoops<T>& activation_loops();

// Normalization within rows. Without a mean (null) nothing is subtracted, as in rms_norm; its bias is null too.
struct RowNorm {
  const float *weight, *bias;
  float *mean, *inverse;  // one number a row: where the forward pass puts them, and backward finds them
};

template <typename T>
struct NormLoops {
  void (*normalize)(const T* x, T* y, std::int64_t rows, std::int64_t columns, const RowNorm& norm, double epsilon);
  // dx = addend + the data gradient, rounded before it is added; no addend when null.
  void (*gradient)(const T* dy, const T* x, const T* addend, T* dx, std::int64_t rows, std::int64_t columns, const RowNorm& norm);
  // weight = sum over rows of dy (x - mean) inverse, and bias = sum of dy unless null.
  void (*parameter_sums)(const T* dy, const T* x, std::int64_t rows, std::int64_t columns, const RowNorm& norm, float* weight,
                         float* bias);
};
template <typename T>
const NormLoops<T>& norm_loops();

// The pairs of one row's heads: x1 cos - x2 sin and x2 cos + x1 sin, where x2 stands half a head after x1.
struct RowRotation {
  std::int64_t heads, half;
  const float *cosine, *sine;  // of the row's position, by number of the pair
};

template <typename T>
struct TableLoops {
  void (*rotate)(const RowRotation& rotation, const T* x, T* y);
  // sum += the row.
  void (*add_row)(const T* row, float* sum, std::int64_t columns);
};
template <typename T>
const TableLoops<T>& table_loops();

// What a row of a classifier's logits adds to the loss.
struct LogitSums {
  double log_sum_exp, logits;
  bool label_is_largest;  // the first of equals counts; with a NaN none does
};
LogitSums sums_of_logits(const float* logits, std::int64_t classes, std::int64_t label);

// What the gradients of some of a row's logits are made of: scale * (softmax - target), where the target is at_label at `label`,
// counted from the first of these logits, and `elsewhere` at the others.
struct LogitGradient {
  double log_sum_exp;
  float scale, elsewhere, at_label;
  std::int64_t label;
};

template <typename T>
struct ClassifierLoops {
  // The gradients may take the place of the logits.
  void (*gradient)(const float* logits, T* gradients, std::int64_t count, const LogitGradient& row);
};
template <typename T>
const ClassifierLoops<T>& classifier_loops();

// Cosines and sines of the angles of frequencies of ops/sequence/rotary_angles.h; the position has 32 bits.
void rotation_angles(std::int64_t position, const float* frequencies, std::int64_t count, float* cosine, float* sine);

}  // namespace snug::backends::cpu::simd
