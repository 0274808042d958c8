// Exponentials and what is made of them, to about two units in the last place of a float; for files that Highway compiles once
// for each instruction set. A NaN stays NaN everywhere, so that an overflow stays visible.
#if defined(SNUG_SEQUENCE_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SEQUENCE_MATH_INL_H
#undef SNUG_SEQUENCE_MATH_INL_H
#else
#define SNUG_SEQUENCE_MATH_INL_H
#endif

#include <initializer_list>
#include <limits>

#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Coefficients from the highest power down.
template <typename D, typename... Rest>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> x, float highest, Rest... rest) {
  auto sum = hn::Set(d, highest);
  (static_cast<void>(sum = hn::MulAdd(sum, x, hn::Set(d, rest))), ...);
  return sum;
}

// Adding this to a float below 2^22 leaves its nearest integer in the lowest bits.
inline constexpr float kRounder = 12582912.0F;

// x 2^n, where `rounded` is n + kRounder and the result is a normal number.
template <typename D>
HWY_INLINE hn::Vec<D> scaled_by_power(D d, hn::Vec<D> x, hn::Vec<D> rounded) {
  const hn::Rebind<std::int32_t, D> integers;
  return hn::BitCast(d, hn::Add(hn::BitCast(integers, x), hn::ShiftLeft<23>(hn::BitCast(integers, rounded))));
}

// 2^x for x below 128. Below the smallest normal number it is 0.
template <typename D>
HWY_INLINE hn::Vec<D> small_power_of_two(D d, hn::Vec<D> x) {
  const auto rounded = hn::Add(x, hn::Set(d, kRounder));
  const auto part = hn::Sub(x, hn::Sub(rounded, hn::Set(d, kRounder)));
  const auto power =
      polynomial(d, part, 1.545318283e-4F, 1.339088633e-3F, 9.61808252e-3F, 5.550357071e-2F, 0.2402265076F, 0.693147188F, 1.0F);
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -126.0F)), hn::Zero(d), scaled_by_power(d, power, rounded));
}

// e^x; 0 below the smallest normal number, and infinity.
template <typename D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
  const auto rounded = hn::MulAdd(x, hn::Set(d, 1.44269504F), hn::Set(d, kRounder));
  const auto whole = hn::Sub(rounded, hn::Set(d, kRounder));
  // ln 2 in two parts, of which the first has so few bits that its product is exact.
  const auto part = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4F), hn::NegMulAdd(whole, hn::Set(d, 0.693359375F), x));
  const auto power = polynomial(d, part, 1.392621347e-3F, 8.363202972e-3F, 4.166655444e-2F, 0.1666657685F, 0.5F, 1.0F, 1.0F);
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto large = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.72283F)), infinity, scaled_by_power(d, power, rounded));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.33654F)), hn::Zero(d), large);
}

// A function and its derivative at one place.
template <typename D>
struct ValueAndSlope {
  hn::Vec<D> value, slope;
};

// a b, and 0 where a is 0 whatever b is: far from zero a slope's last term is zero times infinity.
template <typename D>
HWY_INLINE hn::Vec<D> product_or_zero(D d, hn::Vec<D> a, hn::Vec<D> b) {
  return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Zero(d), hn::Mul(a, b));
}

// 1 / (1 + e^-x). The slope is its product with what it lacks to 1, which the subtraction alone would lose far above zero.
template <typename D>
HWY_INLINE ValueAndSlope<D> sigmoid_at(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto power = exponential(d, hn::Neg(x));
  const auto share = hn::Div(one, hn::Add(one, power));
  const auto lacking = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Mul(power, share), hn::Sub(one, share));
  return {share, hn::Mul(share, lacking)};
}

template <typename D>
HWY_INLINE ValueAndSlope<D> silu_at(D d, hn::Vec<D> x) {
  const auto [share, slope] = sigmoid_at(d, x);
  return {hn::Mul(x, share), hn::Add(share, product_or_zero(d, slope, x))};
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2 u, which is precise on both sides.
template <typename D>
HWY_INLINE ValueAndSlope<D> gelu_by_tanh_at(D d, hn::Vec<D> x) {
  constexpr float kTwice = 1.595769122F;  // 2 sqrt(2 / pi)
  constexpr float kCubic = 0.044715F;
  const auto square = hn::Mul(x, x);
  const auto argument = hn::Mul(x, hn::MulAdd(square, hn::Set(d, kTwice * kCubic), hn::Set(d, kTwice)));
  const auto [share, slope] = sigmoid_at(d, argument);
  const auto inner = hn::Mul(x, hn::MulAdd(square, hn::Set(d, 3 * kTwice * kCubic), hn::Set(d, kTwice)));
  return {hn::Mul(x, share), hn::Add(share, product_or_zero(d, slope, inner))};
}

// With the complementary error function: erfc(z) = e^(-z^2) t P(t) for z >= 0, t = 1 / (1 + 0.3 z).
template <typename D>
HWY_INLINE ValueAndSlope<D> gelu_at(D d, hn::Vec<D> x) {
  constexpr float kHalfRoot = 0.7071067812F;
  constexpr float kDensity = 0.3989422804F;  // of the normal distribution at 0
  const auto one = hn::Set(d, 1.0F);
  const auto z = hn::Mul(hn::Abs(x), hn::Set(d, kHalfRoot));
  const auto t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.3F), one));
  const auto fall = exponential(d, hn::Neg(hn::Mul(z, z)));
  const auto fit = polynomial(d, t, -0.1309737571F, 0.4928268812F, -0.527762655F, 0.5660341854F, -0.1077624578F, 0.2207305504F,
                              0.1467908945F, 0.1709423444F, 0.1691739912F);
  const auto tail = hn::Mul(hn::Mul(hn::Set(d, 0.5F), hn::Mul(fit, t)), fall);  // of the distribution, beyond |x|
  const auto share = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(one, tail), tail);
  const auto density = hn::Mul(fall, hn::Set(d, kDensity));
  return {hn::Mul(x, share), hn::Add(share, product_or_zero(d, density, x))};
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
