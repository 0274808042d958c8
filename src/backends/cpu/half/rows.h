// Rows of `count` 16-bit numbers, `step` apart, as contiguous floats, and back; on the calling thread.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/loops.h"

namespace snug::backends::cpu {

template <typename T>
void widen_rows(const T* from, std::int64_t step, float* to, std::int64_t count, std::int64_t rows) {
  const auto widen = simd::element_loops<T>().widen;
  if (count == step) return widen(from, to, rows * count);
  for (std::int64_t r = 0; r < rows; ++r) widen(from + r * step, to + r * count, count);
}

template <typename T>
void narrow_rows(const float* from, T* to, std::int64_t step, std::int64_t count, std::int64_t rows) {
  const auto narrow = simd::element_loops<T>().narrow;
  if (count == step) return narrow(from, to, rows * count);
  for (std::int64_t r = 0; r < rows; ++r) narrow(from + r * count, to + r * step, count);
}

}  // namespace snug::backends::cpu
