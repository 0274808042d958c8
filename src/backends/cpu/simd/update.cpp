#include "backends/cpu/simd/update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/simd/code_table.h"
#include "ops/updates/block_code.h"
#include "ops/updates/scaled_moments.h"

// See loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/simd/rounding-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, typename D>
HWY_INLINE void sgd_step(D d, const UpdateRule& rule, const SgdArrays<T>& a, std::int64_t i, const Chances<D>& chances) {
  const auto weight = load(d, a.weight + i);
  // Plus 0: a gradient of -0 becomes +0, as in a sum.
  const auto gradient = hn::MulAdd(load(d, a.gradient + i), hn::Set(d, rule.gradient_scale), hn::Zero(d));
  auto step = hn::MulAdd(hn::Set(d, rule.weight_decay), weight, gradient);
  if (a.momentum != nullptr) {
    const auto moved = hn::MulAdd(hn::Set(d, rule.momentum), load(d, a.momentum + i), step);
    chances.store_momentum(moved, d, a.new_momentum + i);
    step = rule.nesterov ? hn::MulAdd(hn::Set(d, rule.momentum), moved, step) : moved;
  }
  chances.store_weight(hn::NegMulAdd(hn::Set(d, rule.learning_rate), step, weight), d, a.new_weight + i);
  store(hn::Zero(d), d, a.new_gradient + i);
}

template <typename T>
void sgd(const UpdateRule& rule, const SgdArrays<T>& a, std::int64_t first, std::int64_t count) {
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count,
                    [&](auto d, std::int64_t i, const std::uint32_t* words) {
                      sgd_step<T>(d, rule, a, first + i, Chances<decltype(d)>(words));
                    });
}

// What an element's moments become, by a gradient that is scaled already.
template <typename D>
struct Moments {
  Moments(D d, const AdamwRule& rule, hn::Vec<D> gradient, hn::Vec<D> old_first, hn::Vec<D> old_second)
      : first(hn::Add(hn::Mul(hn::Set(d, rule.first_decay), old_first), hn::Mul(hn::Set(d, 1 - rule.first_decay), gradient))),
        second(hn::Add(hn::Mul(hn::Set(d, rule.second_decay), old_second),
                       hn::Mul(hn::Mul(hn::Set(d, 1 - rule.second_decay), gradient), gradient))) {}

  hn::Vec<D> first, second;
};

// Moments that are read from their places, times scales.
template <typename T, typename M, typename D>
HWY_INLINE Moments<D> moved_moments(D d, const AdamwRule& rule, const AdamwArrays<T, M>& a, MomentPair scales, std::int64_t i) {
  return {d, rule, hn::Mul(load(d, a.gradient + i), hn::Set(d, rule.gradient_scale)),
          hn::Mul(load(d, a.first + i), hn::Set(d, scales.first)), hn::Mul(load(d, a.second + i), hn::Set(d, scales.second))};
}

template <typename D>
HWY_INLINE hn::Vec<D> adamw_weight(D d, const AdamwRule& rule, const Moments<D>& moved, hn::Vec<D> weight) {
  const auto length = hn::Add(hn::Div(hn::Sqrt(moved.second), hn::Set(d, rule.second_bias)), hn::Set(d, rule.epsilon));
  const auto step = hn::Mul(hn::Set(d, rule.rate), hn::Div(moved.first, length));
  return hn::Sub(hn::Mul(weight, hn::Set(d, rule.keeps)), step);
}

template <typename T, typename M>
void adamw(const AdamwRule& rule, const AdamwArrays<T, M>& a, std::int64_t first, std::int64_t count) {
  const auto step = [&](auto d, std::int64_t k, const std::uint32_t* words) {
    const std::int64_t i = first + k;
    const Chances<decltype(d)> chances(words);
    const auto moved = moved_moments(d, rule, a, {1, 1}, i);
    chances.store_weight(adamw_weight(d, rule, moved, load(d, a.weight + i)), d, a.new_weight + i);
    chances.store_momentum(moved.first, d, a.new_first + i);
    chances.store_momentum(moved.second, d, a.new_second + i);
    store(hn::Zero(d), d, a.new_gradient + i);
  };
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step);
}

template <typename T>
MomentPair largest_moments(const AdamwRule& rule, const AdamwArrays<T, Half>& a, MomentPair scales, std::int64_t first,
                           std::int64_t count) {
  const Floats wide;
  auto first_sizes = hn::Zero(wide), second_sizes = hn::Zero(wide);
  MomentPair rest{0, 0};
  const auto size = [](auto d, auto moment) { return hn::IfThenElse(hn::IsFinite(moment), hn::Abs(moment), hn::Zero(d)); };
  for_each_vector(count, [&](auto d, std::int64_t k) {
    const auto moved = moved_moments(d, rule, a, scales, first + k);
    if constexpr (std::is_same_v<decltype(d), Floats>) {
      first_sizes = hn::Max(first_sizes, size(d, moved.first));
      second_sizes = hn::Max(second_sizes, size(d, moved.second));
    } else {
      rest.first = std::max(rest.first, hn::GetLane(size(d, moved.first)));
      rest.second = std::max(rest.second, hn::GetLane(size(d, moved.second)));
    }
  });
  return {.first = std::max(rest.first, hn::GetLane(hn::MaxOfLanes(wide, first_sizes))),
          .second = std::max(rest.second, hn::GetLane(hn::MaxOfLanes(wide, second_sizes)))};
}

template <typename T>
void adamw_scaled(const AdamwRule& rule, const AdamwArrays<T, Half>& a, MomentPair scales, MomentPair new_scales,
                  std::int64_t first, std::int64_t count) {
  const float first_inverse = 1 / new_scales.first, second_inverse = 1 / new_scales.second;  // exact: powers of two
  const auto step = [&](auto d, std::int64_t k, const std::uint32_t* words) {
    const std::int64_t i = first + k;
    const Chances<decltype(d)> chances(words);
    const auto moved = moved_moments(d, rule, a, scales, i);
    chances.store_weight(adamw_weight(d, rule, moved, load(d, a.weight + i)), d, a.new_weight + i);
    chances.store_momentum(hn::Mul(moved.first, hn::Set(d, first_inverse)), d, a.new_first + i);
    const auto second = hn::Mul(moved.second, hn::Set(d, second_inverse));
    const auto least = hn::Set(d, ops::kLeastStoredMoment);
    const auto vanishes = hn::And(hn::Gt(moved.second, hn::Zero(d)), hn::Lt(second, least));
    chances.store_momentum(hn::IfThenElse(vanishes, least, second), d, a.new_second + i);
    store(hn::Zero(d), d, a.new_gradient + i);
  };
  // Moments are drawn for beside a weight in floats, too.
  for_each_drawn<Half>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step);
}

// The numbers of a block of codes, before and after they move. Table lookups are scalar: gathers are slower on many processors.
class DecodedBlock {
 public:
  HWY_INLINE DecodedBlock(const ops::BlockCode& code, const CodeTable& table, const CodedBlock& block, std::int64_t count)
      : code_(code), table_(table), block_(block), count_(count) {
    for (std::int64_t i = 0; i < count; ++i) numbers_[i] = code.values[ops::number_of(code, block.codes[i])];
  }

  template <typename D>
  HWY_INLINE hn::Vec<D> get(D d, std::int64_t i) const {
    return hn::Mul(hn::LoadU(d, numbers_ + i), hn::Set(d, block_.scale));
  }

  template <typename D>
  HWY_INLINE void put(D d, std::int64_t i, hn::Vec<D> numbers) {
    hn::StoreU(numbers, d, numbers_ + i);
    has_nan_ = has_nan_ || !hn::AllFalse(d, hn::IsNaN(numbers));
    hn::StoreU(hn::Max(hn::LoadU(d, sizes_), hn::Abs(numbers)), d, sizes_);
  }

  // Writes the scale and the codes, once every number is there.
  HWY_INLINE void store() {
    float largest = 0;
    for (const float size : sizes_) largest = size > largest ? size : largest;
    if (has_nan_) largest = std::numeric_limits<float>::quiet_NaN();
    *block_.new_scale = largest;
    if (largest == 0) {
      std::fill_n(block_.new_codes, count_, std::uint8_t{0});
      return;
    }
    for_each_vector(count_, [&](auto d, std::int64_t i) {
      hn::StoreU(hn::Div(hn::LoadU(d, numbers_ + i), hn::Set(d, largest)), d, numbers_ + i);
    });
    for (std::int64_t i = 0; i < count_; ++i) block_.new_codes[i] = ops::byte_of(code_, table_(numbers_[i]));
  }

 private:
  const ops::BlockCode& code_;
  const CodeTable& table_;
  CodedBlock block_;
  std::int64_t count_;
  HWY_ALIGN float numbers_[ops::kCodeBlock];
  HWY_ALIGN float sizes_[hn::MaxLanes(Floats())] = {};
  bool has_nan_ = false;
};

template <typename T>
void sgd_quantized(const UpdateRule& rule, const QuantizedSgdBlock<T>& b, std::int64_t first, std::int64_t count) {
  DecodedBlock moments(ops::kSignedCode, kSignedTable, b.momentum, count);
  const auto step_of = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    // One rounding per operation: codes must not depend on whether a machine has fused multiply-add.
    const auto weight = load(d, b.weight + i);
    const auto gradient = hn::Add(hn::Mul(load(d, b.gradient + i), hn::Set(d, rule.gradient_scale)), hn::Zero(d));
    const auto step = hn::Add(gradient, hn::Mul(hn::Set(d, rule.weight_decay), weight));
    const auto momentum = hn::Set(d, rule.momentum);
    const auto now = hn::Add(hn::Mul(momentum, moments.get(d, i)), step);
    const auto used = rule.nesterov ? hn::Add(step, hn::Mul(momentum, now)) : now;
    chances.store_weight(hn::Sub(weight, hn::Mul(hn::Set(d, rule.learning_rate), used)), d, b.new_weight + i);
    store(hn::Zero(d), d, b.new_gradient + i);
    moments.put(d, i, now);
  };
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step_of);
  moments.store();
}

template <typename T>
void adamw_quantized(const AdamwRule& rule, const QuantizedAdamwBlock<T>& b, std::int64_t first, std::int64_t count) {
  DecodedBlock first_moments(ops::kSignedCode, kSignedTable, b.first, count);
  DecodedBlock second_moments(ops::kUnsignedCode, kUnsignedTable, b.second, count);
  const auto step_of = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    const Moments<decltype(d)> moved(d, rule, hn::Mul(load(d, b.gradient + i), hn::Set(d, rule.gradient_scale)),
                                     first_moments.get(d, i), second_moments.get(d, i));
    chances.store_weight(adamw_weight(d, rule, moved, load(d, b.weight + i)), d, b.new_weight + i);
    store(hn::Zero(d), d, b.new_gradient + i);
    first_moments.put(d, i, moved.first);
    second_moments.put(d, i, moved.second);
  };
  for_each_drawn<T>(rule.rounding.stochastic, rule.rounding.seed, rule.rounding.counter_high, first, count, step_of);
  first_moments.store();
  second_moments.store();
}

template <typename T>
void combine(const Combination<T>& arrays, float a, float b, const Rounding& rounding, std::int64_t first, std::int64_t count) {
  const auto step = [&](auto d, std::int64_t i, const std::uint32_t* words) {
    const Chances<decltype(d)> chances(words);
    const auto scaled = hn::Mul(hn::Set(d, a), load(d, arrays.one + first + i));
    const auto sum = hn::MulAdd(hn::Set(d, b), load(d, arrays.other + first + i), scaled);
    if (arrays.is_weight) {
      chances.store_weight(sum, d, arrays.out + first + i);
    } else {
      chances.store_momentum(sum, d, arrays.out + first + i);
    }
  };
  for_each_drawn<T>(rounding.stochastic, rounding.seed, rounding.counter_high, rounding.first_element + first, count, step);
}

template <typename T>
constexpr UpdateLoops<T> kUpdateLoops{.sgd = sgd<T>,
                                      .adamw = adamw<T, T>,
                                      .adamw_with_floats = adamw<T, float>,
                                      .largest_moments = largest_moments<T>,
                                      .adamw_scaled = adamw_scaled<T>,
                                      .sgd_quantized = sgd_quantized<T>,
                                      .adamw_quantized = adamw_quantized<T>,
                                      .combine = combine<T>};

SNUG_DEFINE_TABLES(UpdateLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(UpdateLoops, update_loops)

}  // namespace snug::backends::cpu::simd
#endif
