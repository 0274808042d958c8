// What lightweight and dynamic convolutions repeat for the columns of one head, as the loops of loops.h: one thread each.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

// Rows of `size` neighbors, `stride` elements from one to the next.
struct HeadRows {
  std::int64_t count, stride, size;
};

// A number for each of some rows, `stride` elements from one to the next, which may be negative.
template <typename T>
struct RowWeights {
  const T* first;
  std::int64_t stride;
};

template <typename T>
struct DynamicConvLoops {
  // to = addend + the sum of the rows, each times its weight, rounded before it is added; no addend when null.
  void (*weigh)(const HeadRows& rows, const T* values, const RowWeights<T>& weights, const T* addend, T* to);
  // The product of one row with each of the rows.
  void (*products)(const HeadRows& rows, const T* one, const T* values, float* to);
  // to[k] += the sum of a * b over all rows, where those of b begin k rows after the first: for so many taps.
  void (*add_products)(const HeadRows& rows, const T* a, const T* b, std::int64_t taps, float* to);
};
template <typename T>
const DynamicConvLoops<T>& dynamic_conv_loops();

}  // namespace snug::backends::cpu::simd
