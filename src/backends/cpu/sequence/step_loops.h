// Attention of one row at a time over keys and values that are kept, as the loops of loops.h: one thread each.
#pragma once

#include <cstdint>

#include "backends/cpu/storage.h"

namespace snug::backends::cpu::simd {

// What one head of one query sees.
struct SeenKeys {
  std::int64_t count;   // of keys and values, at least 1
  std::int64_t stride;  // elements from one to the next
  std::int64_t size;    // elements of each
  float scale;
};

template <typename T>
struct StepLoops {
  // y = the values' mean, weighted by softmax(scale * query . key). `weights` has room for `count` floats.
  void (*attend)(const SeenKeys& seen, const T* query, const T* keys, const T* values, T* y, float* weights);
};
template <typename T>
const StepLoops<T>& step_loops();

}  // namespace snug::backends::cpu::simd
