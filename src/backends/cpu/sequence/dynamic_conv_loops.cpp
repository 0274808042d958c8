#include "backends/cpu/sequence/dynamic_conv_loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/dynamic_conv_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/sums-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

// Heads often have fewer columns than a vector has lanes.
using Few = hn::CappedTag<float, 4>;

// Vectors vectors from column i on.
template <int Vectors, typename D, typename T>
HWY_INLINE void weigh_columns(D d, const HeadRows& rows, const T* values, const RowWeights<T>& weights, const T* addend,
                              std::int64_t i, T* to) {
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[Vectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  const T* row = values + i;
  const T* weight = weights.first;
  for (std::int64_t j = 0; j < rows.count; ++j, row += rows.stride, weight += weights.stride) {
    const auto factor = hn::Set(d, hn::GetLane(load(Single(), weight)));
    for (int v = 0; v < Vectors; ++v) sums[v] = hn::MulAdd(factor, load(d, row + v * step), sums[v]);
  }
  for (int v = 0; v < Vectors; ++v) {
    const std::int64_t at = i + v * step;
    store(addend == nullptr ? sums[v] : hn::Add(load(d, addend + at), rounded<T>(d, sums[v])), d, to + at);
  }
}

template <typename T>
void weigh(const HeadRows& rows, const T* values, const RowWeights<T>& weights, const T* addend, T* to) {
  const auto few = static_cast<std::int64_t>(hn::Lanes(Few()));
  std::int64_t i = 0;
  for (; i + 4 * lanes() <= rows.size; i += 4 * lanes()) weigh_columns<4>(Floats(), rows, values, weights, addend, i, to);
  for (; i + lanes() <= rows.size; i += lanes()) weigh_columns<1>(Floats(), rows, values, weights, addend, i, to);
  for (; i + few <= rows.size; i += few) weigh_columns<1>(Few(), rows, values, weights, addend, i, to);
  for (; i < rows.size; ++i) weigh_columns<1>(Single(), rows, values, weights, addend, i, to);
}

template <typename T>
void products(const HeadRows& rows, const T* one, const T* values, float* to) {
  for (std::int64_t j = 0; j < rows.count; ++j, values += rows.stride)
    to[j] = sum_over(rows.size, [&](auto d, std::int64_t i) { return hn::Mul(load(d, one + i), load(d, values + i)); });
}

// For Taps taps at once, so that a gradient of the output is loaded once for all of them.
template <int Taps, typename T>
HWY_INLINE void sum_of_taps(const HeadRows& rows, const T* a, const T* b, float* to) {
  const auto few = static_cast<std::int64_t>(hn::Lanes(Few()));
  hn::Vec<Floats> sums[Taps];
  hn::Vec<Few> of_few[Taps];
  hn::Vec<Single> of_single[Taps];
  for (int k = 0; k < Taps; ++k) {
    sums[k] = hn::Zero(Floats());
    of_few[k] = hn::Zero(Few());
    of_single[k] = hn::Zero(Single());
  }
  for (std::int64_t row = 0; row < rows.count; ++row, a += rows.stride, b += rows.stride) {
    const auto add = [&](auto d, std::int64_t i, auto* to_sums) {
      const auto factor = load(d, a + i);
      for (int k = 0; k < Taps; ++k) to_sums[k] = hn::MulAdd(factor, load(d, b + k * rows.stride + i), to_sums[k]);
    };
    std::int64_t i = 0;
    for (; i + lanes() <= rows.size; i += lanes()) add(Floats(), i, sums);
    for (; i + few <= rows.size; i += few) add(Few(), i, of_few);
    for (; i < rows.size; ++i) add(Single(), i, of_single);
  }
  for (int k = 0; k < Taps; ++k) {
    to[k] += hn::GetLane(hn::SumOfLanes(Floats(), sums[k])) + hn::GetLane(hn::SumOfLanes(Few(), of_few[k])) +
             hn::GetLane(of_single[k]);
  }
}

template <typename T>
void add_products(const HeadRows& rows, const T* a, const T* b, std::int64_t taps, float* to) {
  std::int64_t k = 0;
  for (; k + 4 <= taps; k += 4) sum_of_taps<4>(rows, a, b + k * rows.stride, to + k);
  for (; k < taps; ++k) sum_of_taps<1>(rows, a, b + k * rows.stride, to + k);
}

template <typename T>
constexpr DynamicConvLoops<T> kDynamicConvLoops{.weigh = weigh<T>, .products = products<T>, .add_products = add_products<T>};

SNUG_DEFINE_TABLES(DynamicConvLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(DynamicConvLoops, dynamic_conv_loops)

}  // namespace snug::backends::cpu::simd
#endif
