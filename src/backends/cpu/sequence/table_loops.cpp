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

// A quarter turn in parts. A number of up to 31 bits times either of the first two is exact in double, fused or not.
constexpr double kQuarter1 = 0x1.921fbp+0, kQuarter2 = 0x1.5110bp-22, kQuarter3 = 0x1.18469898cc517p-44;

// An angle, at most 2^31, is brought to a quarter turn in double: a float would lose what is left of many turns.
template <typename D>
HWY_INLINE void angles_at(D d, float position, const float* frequencies, float* cosine, float* sine) {
  const hn::Rebind<double, D> wide;
  const hn::Rebind<std::int32_t, D> integers;
  const auto angle = hn::PromoteTo(wide, hn::Mul(hn::Set(d, position), hn::LoadU(d, frequencies)));
  const auto quarters = hn::Round(hn::Mul(angle, hn::Set(wide, 0.63661977236758134308)));
  auto rest = hn::NegMulAdd(quarters, hn::Set(wide, kQuarter1), angle);
  rest = hn::NegMulAdd(quarters, hn::Set(wide, kQuarter2), rest);
  rest = hn::NegMulAdd(quarters, hn::Set(wide, kQuarter3), rest);
  const auto x = hn::DemoteTo(d, rest);
  const auto quarter = hn::DemoteTo(integers, quarters);
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

void rotation_angles_loop(float position, const float* frequencies, std::int64_t count, float* cosine, float* sine) {
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

void rotation_angles(std::int64_t position, const float* frequencies, std::int64_t count, float* cosine, float* sine) {
  HWY_DYNAMIC_DISPATCH(rotation_angles_loop)(static_cast<float>(position), frequencies, count, cosine, sine);
}

SNUG_EXPORT_TABLES(TableLoops, table_loops)

}  // namespace snug::backends::cpu::simd
#endif
