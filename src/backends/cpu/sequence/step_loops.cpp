#include "backends/cpu/sequence/step_loops.h"

#include <algorithm>
#include <limits>

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/step_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/math-inl.h"
#include "backends/cpu/sequence/sums-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

// to = factor * the sum of weights[j] * values[j] in Vectors vectors from column i on.
template <int Vectors, typename D, typename T>
HWY_INLINE void weigh(D d, const SeenKeys& seen, const T* values, const float* weights, float factor, std::int64_t i, T* to) {
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[Vectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  const T* row = values + i;
  for (std::int64_t j = 0; j < seen.count; ++j, row += seen.stride) {
    const auto weight = hn::Set(d, weights[j]);
    for (int v = 0; v < Vectors; ++v) sums[v] = hn::MulAdd(weight, load(d, row + v * step), sums[v]);
  }
  for (int v = 0; v < Vectors; ++v) store(hn::Mul(sums[v], hn::Set(d, factor)), d, to + i + v * step);
}

template <typename T>
void attend(const SeenKeys& seen, const T* query, const T* keys, const T* values, T* y, float* weights) {
  float largest = std::numeric_limits<float>::lowest();
  for (std::int64_t j = 0; j < seen.count; ++j) {
    const T* const key = keys + j * seen.stride;
    weights[j] =
        seen.scale * sum_over(seen.size, [&](auto d, std::int64_t i) { return hn::Mul(load(d, query + i), load(d, key + i)); });
    largest = std::max(largest, weights[j]);
  }
  const float sum = sum_over(seen.count, [&](auto d, std::int64_t j) {
    const auto weight = exponential(d, hn::Sub(hn::LoadU(d, weights + j), hn::Set(d, largest)));
    hn::StoreU(weight, d, weights + j);
    return weight;
  });
  const float factor = 1 / sum;
  std::int64_t i = 0;
  for (; i + 4 * lanes() <= seen.size; i += 4 * lanes()) weigh<4>(Floats(), seen, values, weights, factor, i, y);
  for (; i + lanes() <= seen.size; i += lanes()) weigh<1>(Floats(), seen, values, weights, factor, i, y);
  for (; i < seen.size; ++i) weigh<1>(Single(), seen, values, weights, factor, i, y);
}

template <typename T>
constexpr StepLoops<T> kStepLoops{.attend = attend<T>};

SNUG_DEFINE_TABLES(StepLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(StepLoops, step_loops)

}  // namespace snug::backends::cpu::simd
#endif
