#include "backends/cpu/simd_loops.h"

// Highway compiles this file once for each instruction set and picks one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Single = hn::CappedTag<float, 1>;

inline std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

// Calls body(tag, i) for every vector of a range, and with single floats for what is left.
template <typename Body>
void for_each_vector(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) body(Floats(), i);
  for (; i < count; ++i) body(Single(), i);
}

void add_loop(const float* a, const float* b, float* out, std::int64_t count) {
  for_each_vector(count,
                  [&](auto d, std::int64_t i) { hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i); });
}

// Zero and below give +0; NaN passes through, so that an overflow stays visible (a maximum would lose it).
template <typename D, typename Vector>
Vector cut_off_below_zero(D d, Vector x) {
  return hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), x);
}

void relu_loop(const float* x, float* y, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) { hn::StoreU(cut_off_below_zero(d, hn::LoadU(d, x + i)), d, y + i); });
}

void relu_grad_loop(const float* dy, const float* y, const float* addend, float* dx, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto passed = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, y + i), hn::Zero(d)), hn::LoadU(d, dy + i));
    hn::StoreU(addend == nullptr ? passed : hn::Add(hn::LoadU(d, addend + i), passed), d, dx + i);
  });
}

void sgd_loop(const SgdRule& rule, const SgdArrays& a, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto weight = hn::LoadU(d, a.weight + i);
    // Plus 0: a gradient of -0 becomes what a sum would be.
    const auto gradient = hn::MulAdd(hn::LoadU(d, a.gradient + i), hn::Set(d, rule.gradient_scale), hn::Zero(d));
    auto step = hn::MulAdd(hn::Set(d, rule.weight_decay), weight, gradient);
    if (a.momentum != nullptr) {
      const auto moved = hn::MulAdd(hn::Set(d, rule.momentum), hn::LoadU(d, a.momentum + i), step);
      hn::StoreU(moved, d, a.new_momentum + i);
      step = rule.nesterov ? hn::MulAdd(hn::Set(d, rule.momentum), moved, step) : moved;
    }
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rule.learning_rate), step, weight), d, a.new_weight + i);
    hn::StoreU(hn::Zero(d), d, a.new_gradient + i);
  });
}

// Sums of two terms an element over rows, or of one where `sum1` is null, for V vectors of channels at a time, so that the sums
// stay in registers. Floats add up over a few rows, doubles over these: rounding grows with the few, not with the many.
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

void moments_loop(const float* x, std::int64_t rows, std::int64_t channels, const float* offset, double* sum, double* squares) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& plain, auto& squared) {
        const auto difference = hn::Sub(hn::LoadU(d, x + row + c), hn::LoadU(d, offset + c));
        plain = hn::Add(plain, difference);
        squared = hn::MulAdd(difference, difference, squared);
      },
      sum, squares);
}

void column_sums_loop(const float* x, std::int64_t rows, std::int64_t channels, double* sum) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& plain, auto& /*unused*/) {
        plain = hn::Add(plain, hn::LoadU(d, x + row + c));
      },
      sum, nullptr);
}

template <typename D, typename Vector>
Vector normalized(D d, Vector centred, const Normalizer& n, std::int64_t c) {
  return hn::MulAdd(centred, hn::LoadU(d, n.scale + c), hn::LoadU(d, n.bias + c));
}

void normalize_loop(const float* x, float* y, std::int64_t rows, std::int64_t channels, const Normalizer& n) {
  for (std::int64_t row = 0; row < rows * channels; row += channels) {
    for_each_vector(channels, [&](auto d, std::int64_t c) {
      const auto value = normalized(d, hn::Sub(hn::LoadU(d, x + row + c), hn::LoadU(d, n.mean + c)), n, c);
      hn::StoreU(n.relu ? cut_off_below_zero(d, value) : value, d, y + row + c);
    });
  }
}

// dy where the normaliser gave a positive number: the same expression, so the same bits.
template <typename D, typename Vector>
Vector through_relu(D d, Vector dy, Vector centred, const Normalizer& n, std::int64_t c) {
  return n.relu ? hn::IfThenElseZero(hn::Gt(normalized(d, centred, n, c), hn::Zero(d)), dy) : dy;
}

void gradient_sums_loop(const float* dy, const float* x, std::int64_t rows, std::int64_t channels, const Normalizer& n,
                        double* with_x, double* plain) {
  sum_all_columns(
      rows, channels,
      [&](auto d, std::int64_t row, std::int64_t c, auto& times_x, auto& alone) {
        const auto centred = hn::Sub(hn::LoadU(d, x + row + c), hn::LoadU(d, n.mean + c));
        const auto gradient = through_relu(d, hn::LoadU(d, dy + row + c), centred, n, c);
        times_x = hn::MulAdd(gradient, centred, times_x);
        alone = hn::Add(alone, gradient);
      },
      with_x, plain);
}

void norm_gradient_loop(const float* dy, const float* x, const float* addend, float* dx, std::int64_t rows, std::int64_t channels,
                        const NormGradient& g) {
  for (std::int64_t row = 0; row < rows * channels; row += channels) {
    for_each_vector(channels, [&](auto d, std::int64_t c) {
      const auto centred = hn::Sub(hn::LoadU(d, x + row + c), hn::LoadU(d, g.normalizer.mean + c));
      const auto gradient = through_relu(d, hn::LoadU(d, dy + row + c), centred, g.normalizer, c);
      const auto through_statistics = hn::MulAdd(hn::LoadU(d, g.of_x + c), centred, hn::LoadU(d, g.constant + c));
      const auto result = hn::MulAdd(hn::LoadU(d, g.of_dy + c), gradient, through_statistics);
      hn::StoreU(addend == nullptr ? result : hn::Add(hn::LoadU(d, addend + row + c), result), d, dx + row + c);
    });
  }
}

void largest_pixel_loop(const Pixel* pixels, std::int64_t count, std::int64_t channels, float* largest, std::int32_t* winner) {
  for_each_vector(channels, [&](auto d, std::int64_t c) {
    const hn::Rebind<std::int32_t, decltype(d)> integers;
    auto best = hn::LoadU(d, pixels[0].data + c);
    auto number = hn::Set(integers, pixels[0].number);
    for (std::int64_t i = 1; i < count; ++i) {
      const auto value = hn::LoadU(d, pixels[i].data + c);
      const auto wins = hn::Or(hn::Gt(value, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
      best = hn::IfThenElse(wins, value, best);
      number = hn::IfThenElse(hn::RebindMask(integers, wins), hn::Set(integers, pixels[i].number), number);
    }
    if (largest != nullptr) hn::StoreU(best, d, largest + c);
    if (winner != nullptr) hn::StoreU(number, integers, winner + c);
  });
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(add_loop);
HWY_EXPORT(relu_loop);
HWY_EXPORT(relu_grad_loop);
HWY_EXPORT(sgd_loop);
HWY_EXPORT(moments_loop);
HWY_EXPORT(column_sums_loop);
HWY_EXPORT(normalize_loop);
HWY_EXPORT(gradient_sums_loop);
HWY_EXPORT(norm_gradient_loop);
HWY_EXPORT(largest_pixel_loop);

void add(const float* a, const float* b, float* out, std::int64_t count) { HWY_DYNAMIC_DISPATCH(add_loop)(a, b, out, count); }

void relu(const float* x, float* y, std::int64_t count) { HWY_DYNAMIC_DISPATCH(relu_loop)(x, y, count); }

void relu_grad(const float* dy, const float* y, const float* addend, float* dx, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(relu_grad_loop)(dy, y, addend, dx, count);
}

void sgd(const SgdRule& rule, const SgdArrays& arrays, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_loop)(rule, arrays, count);
}

void moments(const float* x, std::int64_t rows, std::int64_t channels, const float* offset, double* sum, double* squares) {
  HWY_DYNAMIC_DISPATCH(moments_loop)(x, rows, channels, offset, sum, squares);
}

void column_sums(const float* x, std::int64_t rows, std::int64_t channels, double* sum) {
  HWY_DYNAMIC_DISPATCH(column_sums_loop)(x, rows, channels, sum);
}

void normalize(const float* x, float* y, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer) {
  HWY_DYNAMIC_DISPATCH(normalize_loop)(x, y, rows, channels, normalizer);
}

void gradient_sums(const float* dy, const float* x, std::int64_t rows, std::int64_t channels, const Normalizer& normalizer,
                   double* with_x, double* plain) {
  HWY_DYNAMIC_DISPATCH(gradient_sums_loop)(dy, x, rows, channels, normalizer, with_x, plain);
}

void norm_gradient(const float* dy, const float* x, const float* addend, float* dx, std::int64_t rows, std::int64_t channels,
                   const NormGradient& gradient) {
  HWY_DYNAMIC_DISPATCH(norm_gradient_loop)(dy, x, addend, dx, rows, channels, gradient);
}

void largest_pixel(const Pixel* pixels, std::int64_t count, std::int64_t channels, float* largest, std::int32_t* winner) {
  HWY_DYNAMIC_DISPATCH(largest_pixel_loop)(pixels, count, channels, largest, winner);
}

}  // namespace snug::backends::cpu::simd
#endif
