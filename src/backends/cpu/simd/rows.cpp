#include "backends/cpu/simd/loops.h"

// Loops over rows of channels; see loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

// Sums of two terms per element over rows, or of one where `sum1` is null, for V vectors of channels at a time, so that the sums
// stay in registers. Floats add up a few rows, doubles add up these sums: the rounding error grows only with the few.
inline constexpr std::int64_t kRowsInFloat = 64;

template <int V, typename D, typename Terms>
void sum_columns(D d, std::int64_t rows, std::int64_t channels, std::int64_t first, const Terms& terms, double* sum0,
                 double* sum1) {
  using Vector = hn::Vec<D>;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t begin = 0; begin < rows; begin += kRowsInFloat) {
    const std::int64_t end = begin + kRowsInFloat < rows ? begin + kRowsInFloat : rows;
    Vector part0[V];
    Vector part1[V];
    for (int v = 0; v < V; ++v) part0[v] = part1[v] = hn::Zero(d);
    for (std::int64_t row = begin; row < end; ++row) {
      for (int v = 0; v < V; ++v) terms(d, row * channels, first + v * n, part0[v], part1[v]);
    }
    HWY_ALIGN float spilled[2 * hn::MaxLanes(Floats())];
    for (int v = 0; v < V; ++v) {
      hn::StoreU(part0[v], d, spilled);
      hn::StoreU(part1[v], d, spilled + n);
      for (std::int64_t i = 0; i < n; ++i) {
        sum0[first + v * n + i] += static_cast<double>(spilled[i]);
        if (sum1 != nullptr) sum1[first + v * n + i] += static_cast<double>(spilled[n + i]);
      }
    }
  }
}

template <typename Terms>
void sum_all_columns(std::int64_t rows, std::int64_t channels, const Terms& terms, double* sum0, double* sum1) {
  std::int64_t c = 0;
  const Floats d;
  for (; c + 4 * lanes() <= channels; c += 4 * lanes()) sum_columns<4>(d, rows, channels, c, terms, sum0, sum1);
  for (; c + 2 * lanes() <= channels; c += 2 * lanes()) sum_columns<2>(d, rows, channels, c, terms, sum0, sum1);
  for (; c + lanes() <= channels; c += lanes()) sum_columns<1>(d, rows, channels, c, terms, sum0, sum1);
  for (; c < channels; ++c) sum_columns<1>(Single(), rows, channels, c, terms, sum0, sum1);
}

template <typename T>
void moments(const T* x, std::int64_t rows, std::int64_t channels, const float* offset, double* sum, double* squares) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& plain, auto& squared) {
        const auto difference = hn::Sub(load(d, x + row + c), hn::LoadU(d, offset + c));
        plain = hn::Add(plain, difference);
        squared = hn::MulAdd(difference, difference, squared);
      },
      sum, squares);
}

template <typename T>
void column_sums(const T* x, std::int64_t rows, std::int64_t channels, double* sum) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& plain, auto& /*unused*/) {
        plain = hn::Add(plain, load(d, x + row + c));
      },
      sum, nullptr);
}

template <typename D, typename Vector>
Vector normalized(D d, Vector centerd, const Normalizer& n, std::int64_t c) {
  return hn::MulAdd(centerd, hn::LoadU(d, n.scale + c), hn::LoadU(d, n.bias + c));
}

template <typename T>
void normalize(const T* x, T* y, std::int64_t rows, std::int64_t channels, const Normalizer& n) {
  for (std::int64_t row = 0; row < rows * channels; row += channels) {
    for_each_vector(channels, [&](auto d, std::int64_t c) {
      const auto value = normalized(d, hn::Sub(load(d, x + row + c), hn::LoadU(d, n.mean + c)), n, c);
      // Zero and below give +0; NaN passes through.
      store(n.relu ? hn::IfThenElse(hn::Le(value, hn::Zero(d)), hn::Zero(d), value) : value, d, y + row + c);
    });
  }
}

// dy where the normalizer's stored result is positive: the same expression, so the same bits.
template <typename T, typename D, typename Vector>
Vector through_relu(D d, Vector dy, Vector centerd, const Normalizer& n, std::int64_t c) {
  return n.relu ? hn::IfThenElseZero(hn::Gt(normalized(d, centerd, n, c), hn::Set(d, kVanishes<T>)), dy) : dy;
}

template <typename T>
void gradient_sums(const T* dy, const T* x, std::int64_t rows, std::int64_t channels, const Normalizer& n, double* with_x,
                   double* plain) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& times_x, auto& alone) {
        const auto centerd = hn::Sub(load(d, x + row + c), hn::LoadU(d, n.mean + c));
        const auto gradient = through_relu<T>(d, load(d, dy + row + c), centerd, n, c);
        times_x = hn::MulAdd(gradient, centerd, times_x);
        alone = hn::Add(alone, gradient);
      },
      with_x, plain);
}

template <typename T>
void norm_gradient(const T* dy, const T* x, const T* addend, T* dx, std::int64_t rows, std::int64_t channels,
                   const NormGradient& g) {
  for (std::int64_t row = 0; row < rows * channels; row += channels) {
    for_each_vector(channels, [&](auto d, std::int64_t c) {
      const auto centerd = hn::Sub(load(d, x + row + c), hn::LoadU(d, g.normalizer.mean + c));
      const auto gradient = through_relu<T>(d, load(d, dy + row + c), centerd, g.normalizer, c);
      const auto through_statistics = hn::MulAdd(hn::LoadU(d, g.of_x + c), centerd, hn::LoadU(d, g.constant + c));
      const auto result = hn::MulAdd(hn::LoadU(d, g.of_dy + c), gradient, through_statistics);
      store(addend == nullptr ? result : hn::Add(load(d, addend + row + c), rounded<T>(d, result)), d, dx + row + c);
    });
  }
}

template <typename T>
void largest_pixel(const Pixel<T>* pixels, std::int64_t count, std::int64_t channels, T* largest, std::int32_t* winner) {
  for_each_vector(channels, [&](auto d, std::int64_t c) {
    const hn::Rebind<std::int32_t, decltype(d)> integers;
    auto best = load(d, pixels[0].data + c);
    auto number = hn::Set(integers, pixels[0].number);
    for (std::int64_t i = 1; i < count; ++i) {
      const auto value = load(d, pixels[i].data + c);
      const auto wins = hn::Or(hn::Gt(value, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
      best = hn::IfThenElse(wins, value, best);
      number = hn::IfThenElse(hn::RebindMask(integers, wins), hn::Set(integers, pixels[i].number), number);
    }
    if (largest != nullptr) store(best, d, largest + c);
    if (winner != nullptr) hn::StoreU(number, integers, winner + c);
  });
}

template <typename T>
constexpr RowLoops<T> kRowLoops{.moments = moments<T>,
                                .column_sums = column_sums<T>,
                                .normalize = normalize<T>,
                                .gradient_sums = gradient_sums<T>,
                                .norm_gradient = norm_gradient<T>,
                                .largest_pixel = largest_pixel<T>};

SNUG_DEFINE_TABLES(RowLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(RowLoops, row_loops)

}  // namespace snug::backends::cpu::simd
#endif
