#include "backends/cpu/simd/loops.h"

// Highway compiles this file once for each instruction set and picks one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

template <typename T>
void add(const T* a, const T* b, T* out, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) { store(hn::Add(load(d, a + i), load(d, b + i)), d, out + i); });
}

template <typename T>
void add_floats(const T* sum, const float* fresh, T* out, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) {
    store(hn::Add(load(d, sum + i), rounded<T>(d, hn::LoadU(d, fresh + i))), d, out + i);
  });
}

// Zero and below give +0; NaN passes through, so that an overflow stays visible (a maximum would lose it).
template <typename T>
void relu(const T* x, T* y, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto value = load(d, x + i);
    store(hn::IfThenElse(hn::Le(value, hn::Zero(d)), hn::Zero(d), value), d, y + i);
  });
}

template <typename T>
void relu_grad(const T* dy, const T* y, const T* addend, T* dx, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto passed = hn::IfThenElseZero(hn::Gt(load(d, y + i), hn::Zero(d)), load(d, dy + i));
    store(addend == nullptr ? passed : hn::Add(load(d, addend + i), passed), d, dx + i);
  });
}

template <typename T>
void widen(const T* from, float* to, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) { store(load(d, from + i), d, to + i); });
}

template <typename T>
void narrow(const float* from, T* to, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) { store(load(d, from + i), d, to + i); });
}

// In double from the start: the squares of floats neither overflow nor underflow, and the rounding is far below a float's. Four
// sums hide the latency of the additions.
template <typename T>
double squares(const T* x, std::int64_t count) {
  constexpr int kSums = 4;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, hn::ScalableTag<double>> narrow;
  using Vector = hn::Vec<hn::ScalableTag<double>>;
  const auto step = static_cast<std::int64_t>(hn::Lanes(wide));
  Vector sums[kSums];
  for (Vector& sum : sums) sum = hn::Zero(wide);
  std::int64_t i = 0;
  for (; i + kSums * step <= count; i += kSums * step) {
    for (int s = 0; s < kSums; ++s) {
      const Vector value = hn::PromoteTo(wide, load(narrow, x + i + s * step));
      sums[s] = hn::MulAdd(value, value, sums[s]);
    }
  }
  HWY_ALIGN double spilled[hn::MaxLanes(hn::ScalableTag<double>())];
  hn::Store(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), wide, spilled);
  double total = 0;
  for (std::int64_t lane = 0; lane < step; ++lane) total += spilled[lane];
  for (; i < count; ++i) total += static_cast<double>(to_float(x[i])) * static_cast<double>(to_float(x[i]));
  return total;
}

void row_pairs_loop(const float* rows, const Bfloat16* sum, Bfloat16* out, std::int64_t count) {
  constexpr std::int64_t kRow = 16;
  const hn::CappedTag<float, kRow> d;
  const hn::Rebind<std::uint32_t, decltype(d)> words;
  const auto upper = hn::Set(words, 0xFFFF0000U);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += 2 * kRow) {
    for (std::int64_t k = 0; k < kRow; k += step) {
      auto first = nearest_bfloat(d, hn::LoadU(d, rows + i + k));
      auto second = hn::And(nearest_bfloat(d, hn::LoadU(d, rows + i + kRow + k)), upper);
      // A pair is one word, the first of it in the lower half.
      auto* const pairs = reinterpret_cast<std::uint32_t*>(out + i + 2 * k);
      if (sum != nullptr) {
        const auto before = hn::LoadU(words, reinterpret_cast<const std::uint32_t*>(sum + i + 2 * k));
        const auto add = [&](auto old, auto fresh) {
          return nearest_bfloat(d, hn::Add(hn::BitCast(d, old), hn::BitCast(d, fresh)));
        };
        first = add(hn::ShiftLeft<16>(before), hn::And(first, upper));
        second = hn::And(add(hn::And(before, upper), second), upper);
      }
      hn::StoreU(hn::Or(hn::ShiftRight<16>(first), second), words, pairs);
    }
  }
}

template <typename T>
constexpr ElementLoops<T> kElementLoops{.add = add<T>,
                                        .add_floats = add_floats<T>,
                                        .relu = relu<T>,
                                        .relu_grad = relu_grad<T>,
                                        .widen = widen<T>,
                                        .narrow = narrow<T>,
                                        .squares = squares<T>};

SNUG_DEFINE_TABLES(ElementLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(row_pairs_loop);

void place_row_pairs(const float* rows, const Bfloat16* sum, Bfloat16* out, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(row_pairs_loop)(rows, sum, out, count);
}

SNUG_EXPORT_TABLES(ElementLoops, element_loops)

}  // namespace snug::backends::cpu::simd
#endif
