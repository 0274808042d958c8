#include <algorithm>
#include <cmath>

#include "backends/cpu/sequence/loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/norm_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

template <typename D>
HWY_INLINE double sum_of_lanes(D d, hn::Vec<D> vector) {
  HWY_ALIGN float spilled[hn::MaxLanes(D())];
  hn::Store(vector, d, spilled);
  double sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += static_cast<double>(spilled[i]);
  return sum;
}

struct TwoSums {
  double first = 0, second = 0;
};

// Sums over a row of the two terms that `add(d, i, first, second)` adds; in floats along the row, four apart to hide the latency
// of additions, and in double across the lanes.
template <typename Add>
HWY_INLINE TwoSums sums_over_row(std::int64_t columns, const Add& add) {
  const Floats d;
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  std::int64_t i = 0;
  for (; i + 4 * lanes() <= columns; i += 4 * lanes()) {
    add(d, i, a0, b0);
    add(d, i + lanes(), a1, b1);
    add(d, i + 2 * lanes(), a2, b2);
    add(d, i + 3 * lanes(), a3, b3);
  }
  for (; i + lanes() <= columns; i += lanes()) add(d, i, a0, b0);
  auto rest_a = hn::Zero(Single()), rest_b = rest_a;
  for (; i < columns; ++i) add(Single(), i, rest_a, rest_b);
  const auto total = [&](auto v0, auto v1, auto v2, auto v3, auto rest) {
    return sum_of_lanes(d, hn::Add(hn::Add(v0, v1), hn::Add(v2, v3))) + static_cast<double>(hn::GetLane(rest));
  };
  return {total(a0, a1, a2, a3, rest_a), total(b0, b1, b2, b3, rest_b)};
}

template <typename T>
void normalize(const T* x, T* y, std::int64_t rows, std::int64_t columns, const RowNorm& norm, double epsilon) {
  const auto count = static_cast<double>(columns);
  for (std::int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    float mean = 0;
    if (norm.mean != nullptr) {
      mean = static_cast<float>(
          sums_over_row(columns, [&](auto d, std::int64_t i, auto& sum, auto& /*unused*/) { sum = hn::Add(sum, load(d, x + i)); })
              .first /
          count);
      norm.mean[row] = mean;
    }
    const double squares = sums_over_row(columns, [&](auto d, std::int64_t i, auto& sum, auto& /*unused*/) {
                             const auto difference = hn::Sub(load(d, x + i), hn::Set(d, mean));
                             sum = hn::MulAdd(difference, difference, sum);
                           }).first;
    const auto inverse = static_cast<float>(1 / std::sqrt(squares / count + epsilon));
    norm.inverse[row] = inverse;
    for_each_vector(columns, [&](auto d, std::int64_t i) {
      const auto normalized = hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, mean)), hn::Set(d, inverse));
      const auto scaled = hn::Mul(normalized, hn::LoadU(d, norm.weight + i));
      store(norm.bias == nullptr ? scaled : hn::Add(scaled, hn::LoadU(d, norm.bias + i)), d, y + i);
    });
  }
}

// With g = weight * dy: dx = (g - mean of g - n * mean of g * n) * inverse, where n is the normalized x; without the mean of g
// where no mean was subtracted.
template <typename T>
void norm_gradient(const T* dy, const T* x, const T* addend, T* dx, std::int64_t rows, std::int64_t columns,
                   const RowNorm& norm) {
  const auto count = static_cast<double>(columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = row * columns;
    const float mean = norm.mean == nullptr ? 0.0F : norm.mean[row];
    const float inverse = norm.inverse[row];
    const auto centerd = [&](auto d, std::int64_t i) { return hn::Sub(load(d, x + begin + i), hn::Set(d, mean)); };
    const auto weighted = [&](auto d, std::int64_t i) { return hn::Mul(load(d, dy + begin + i), hn::LoadU(d, norm.weight + i)); };
    const TwoSums sums = sums_over_row(columns, [&](auto d, std::int64_t i, auto& plain, auto& with_x) {
      const auto gradient = weighted(d, i);
      plain = hn::Add(plain, gradient);
      with_x = hn::MulAdd(gradient, centerd(d, i), with_x);
    });
    const double wide_inverse = inverse;
    const auto of_normalized = static_cast<float>(-wide_inverse * wide_inverse * sums.second / count);
    const float constant = norm.mean == nullptr ? 0.0F : static_cast<float>(-wide_inverse * sums.first / count);
    for_each_vector(columns, [&](auto d, std::int64_t i) {
      const auto normalized = hn::Mul(centerd(d, i), hn::Set(d, inverse));
      const auto through_statistics = hn::MulAdd(hn::Set(d, of_normalized), normalized, hn::Set(d, constant));
      const auto result = hn::MulAdd(hn::Set(d, inverse), weighted(d, i), through_statistics);
      store(addend == nullptr ? result : hn::Add(load(d, addend + begin + i), rounded<T>(d, result)), d, dx + begin + i);
    });
  }
}

// Adds Rows rows to the sums; a few at a time, since a sum of pairs loses fewer bits than one number after the other.
template <int Rows, typename T>
HWY_INLINE void add_to_parameter_sums(const T* dy, const T* x, std::int64_t row, std::int64_t columns, const RowNorm& norm,
                                      float* weight, float* bias) {
  for_each_vector(columns, [&](auto d, std::int64_t i) {
    hn::Vec<decltype(d)> products[Rows], gradients[Rows];
    for (int k = 0; k < Rows; ++k) {
      const std::int64_t at = (row + k) * columns + i;
      const float mean = norm.mean == nullptr ? 0.0F : norm.mean[row + k];
      gradients[k] = load(d, dy + at);
      const auto normalized = hn::Mul(hn::Sub(load(d, x + at), hn::Set(d, mean)), hn::Set(d, norm.inverse[row + k]));
      products[k] = hn::Mul(gradients[k], normalized);
    }
    for (int step = 1; step < Rows; step *= 2) {
      for (int k = 0; k < Rows; k += 2 * step) {
        products[k] = hn::Add(products[k], products[k + step]);
        gradients[k] = hn::Add(gradients[k], gradients[k + step]);
      }
    }
    hn::StoreU(hn::Add(hn::LoadU(d, weight + i), products[0]), d, weight + i);
    if (bias != nullptr) hn::StoreU(hn::Add(hn::LoadU(d, bias + i), gradients[0]), d, bias + i);
  });
}

// Memory is read in order, and the sums stay in the first cache.
template <typename T>
void parameter_sums(const T* dy, const T* x, std::int64_t rows, std::int64_t columns, const RowNorm& norm, float* weight,
                    float* bias) {
  constexpr int kTogether = 4;
  std::fill_n(weight, columns, 0.0F);
  if (bias != nullptr) std::fill_n(bias, columns, 0.0F);
  std::int64_t row = 0;
  for (; row + kTogether <= rows; row += kTogether) add_to_parameter_sums<kTogether>(dy, x, row, columns, norm, weight, bias);
  for (; row < rows; ++row) add_to_parameter_sums<1>(dy, x, row, columns, norm, weight, bias);
}

template <typename T>
constexpr NormLoops<T> kNormLoops{.normalize = normalize<T>, .gradient = norm_gradient<T>, .parameter_sums = parameter_sums<T>};

SNUG_DEFINE_TABLES(NormLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(NormLoops, norm_loops)

}  // namespace snug::backends::cpu::simd
#endif
