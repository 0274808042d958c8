// Sums over a range, in vectors; for files that Highway compiles once for each instruction set.
#if defined(SNUG_SEQUENCE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SEQUENCE_SUMS_INL_H
#undef SNUG_SEQUENCE_SUMS_INL_H
#else
#define SNUG_SEQUENCE_SUMS_INL_H
#endif

#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of terms(d, i) over a range, in two sums to hide the latency of additions.
template <typename Terms>
HWY_INLINE float sum_over(std::int64_t count, const Terms& terms) {
  const Floats d;
  auto first = hn::Zero(d), second = first;
  std::int64_t i = 0;
  for (; i + 2 * lanes() <= count; i += 2 * lanes()) {
    first = hn::Add(first, terms(d, i));
    second = hn::Add(second, terms(d, i + lanes()));
  }
  if (i + lanes() <= count) {
    first = hn::Add(first, terms(d, i));
    i += lanes();
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second)));
  for (; i < count; ++i) sum += hn::GetLane(terms(Single(), i));
  return sum;
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
