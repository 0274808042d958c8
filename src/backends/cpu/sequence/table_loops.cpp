#include <cmath>

#include "backends/cpu/sequence/loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/table_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/math-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

template <typename T>
void rotate(const RowRotation& r, const T* x, T* y) {
  for (std::int64_t head = 0; head < r.heads; ++head, x += 2 * r.half, y += 2 * r.half) {
    for_each_vector(r.half, [&](auto d, std::int64_t i) {
      const auto first = load(d, x + i);
      const auto second = load(d, x + r.half + i);
      const auto cosine = hn::LoadU(d, r.cosine + i);
      const auto sine = hn::LoadU(d, r.sine + i);
      store(hn::NegMulAdd(second, sine, hn::Mul(first, cosine)), d, y + i);
      store(hn::MulAdd(first, sine, hn::Mul(second, cosine)), d, y + r.half + i);
    });
  }
}

template <typename T>
void add_row(const T* row, float* sum, std::int64_t columns) {
  for_each_vector(columns,
                  [&](auto d, std::int64_t i) { hn::StoreU(hn::Add(hn::LoadU(d, sum + i), load(d, row + i)), d, sum + i); });
}

// The angle is brought to a quarter turn in double: it may have many turns, and a float would lose what is left of them.
template <typename D>
HWY_INLINE void angles_at(D d, double position, const double* frequencies, float* cosine, float* sine) {
  const hn::Rebind<double, D> wide;
  const hn::Rebind<std::int32_t, D> integers;
  const auto angle = hn::Mul(hn::LoadU(wide, frequencies), hn::Set(wide, position));
  const auto quarters = hn::Round(hn::Mul(angle, hn::Set(wide, 0.63661977236758134308)));
  const auto rest = hn::NegMulAdd(quarters, hn::Set(wide, 6.123233995736766e-17),
                                  hn::NegMulAdd(quarters, hn::Set(wide, 1.5707963267948966), angle));
  const auto x = hn::DemoteTo(d, rest);
  // Of the number of quarter turns the lowest two bits count, which a multiple of 4 less leaves in the range of an int.
  const auto fours = hn::Floor(hn::Mul(quarters, hn::Set(wide, 0.25)));
  const auto quarter = hn::DemoteTo(integers, hn::NegMulAdd(fours, hn::Set(wide, 4.0), quarters));
  const auto square = hn::Mul(x, x);
  const auto small_sine =
      hn::MulAdd(hn::Mul(x, square), polynomial(d, square, -1.958738707e-4F, 8.332745936e-3F, -0.1666666465F), x);
  const auto small_cosine =
      hn::MulAdd(hn::Mul(square, square), polynomial(d, square, 2.454743721e-5F, -1.38883007e-3F, 4.166666465e-2F),
                 hn::MulAdd(square, hn::Set(d, -0.5F), hn::Set(d, 1.0F)));
  const auto one = hn::Set(integers, 1);
  const auto two = hn::Set(integers, 2);
  const auto is_odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  const auto sine_falls = hn::RebindMask(d, hn::Eq(hn::And(quarter, two), two));
  const auto cosine_falls = hn::RebindMask(d, hn::Eq(hn::And(hn::Add(quarter, one), two), two));
  const auto either_sine = hn::IfThenElse(is_odd, small_cosine, small_sine);
  const auto either_cosine = hn::IfThenElse(is_odd, small_sine, small_cosine);
  hn::StoreU(hn::IfThenElse(sine_falls, hn::Neg(either_sine), either_sine), d, sine);
  hn::StoreU(hn::IfThenElse(cosine_falls, hn::Neg(either_cosine), either_cosine), d, cosine);
}

void rotation_angles_loop(double position, const double* frequencies, std::int64_t count, float* cosine, float* sine) {
  const hn::Rebind<float, hn::ScalableTag<double>> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + step <= count; i += step) angles_at(d, position, frequencies + i, cosine + i, sine + i);
  for (; i < count; ++i) angles_at(Single(), position, frequencies + i, cosine + i, sine + i);
}

template <typename T>
constexpr TableLoops<T> kTableLoops{.rotate = rotate<T>, .add_row = add_row<T>};

SNUG_DEFINE_TABLES(TableLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(rotation_angles_loop);

void rotation_angles(double position, const double* frequencies, std::int64_t count, float* cosine, float* sine) {
  HWY_DYNAMIC_DISPATCH(rotation_angles_loop)(position, frequencies, count, cosine, sine);
}

SNUG_EXPORT_TABLES(TableLoops, table_loops)

}  // namespace snug::backends::cpu::simd
#endif
