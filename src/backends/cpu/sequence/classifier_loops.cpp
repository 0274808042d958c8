#include <cmath>

#include "backends/cpu/sequence/loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/classifier_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/math-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

// Additions are made in floats along this many logits and in double between such stretches: no sum of many thousand classes
// loses its digits.
constexpr std::int64_t kStretch = 4096;

HWY_INLINE float largest_of(const float* logits, std::int64_t count) {
  auto first = hn::Set(Floats(), logits[0]), second = first;
  float rest = logits[0];
  std::int64_t i = 0;
  for (; i + 2 * lanes() <= count; i += 2 * lanes()) {
    first = hn::Max(first, hn::LoadU(Floats(), logits + i));
    second = hn::Max(second, hn::LoadU(Floats(), logits + i + lanes()));
  }
  for (; i < count; ++i) rest = rest < logits[i] ? logits[i] : rest;
  const float of_vectors = hn::GetLane(hn::MaxOfLanes(Floats(), hn::Max(first, second)));
  return rest < of_vectors ? of_vectors : rest;
}

// Sums of e^(logit - largest) and of the logits. A NaN among these makes the first NaN, whatever is the largest then.
HWY_INLINE void add_stretch(const float* logits, std::int64_t count, float largest, double& exponentials, double& sum) {
  const Floats d;
  auto e0 = hn::Zero(d), e1 = e0, s0 = e0, s1 = e0;
  const auto most = hn::Set(d, largest);
  std::int64_t i = 0;
  for (; i + 2 * lanes() <= count; i += 2 * lanes()) {
    const auto a = hn::LoadU(d, logits + i), b = hn::LoadU(d, logits + i + lanes());
    e0 = hn::Add(e0, exponential(d, hn::Sub(a, most)));
    e1 = hn::Add(e1, exponential(d, hn::Sub(b, most)));
    s0 = hn::Add(s0, a);
    s1 = hn::Add(s1, b);
  }
  exponentials += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(e0, e1))));
  sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))));
  for (; i < count; ++i) {
    const auto one = hn::Set(Single(), logits[i]);
    exponentials += static_cast<double>(hn::GetLane(exponential(Single(), hn::Sub(one, hn::Set(Single(), largest)))));
    sum += static_cast<double>(logits[i]);
  }
}

// Whether all of these are below the label's logit; where equals are allowed, none above it. A NaN is neither.
template <bool AllowsEquals>
HWY_INLINE bool all_below(const float* logits, std::int64_t count, float of_label) {
  bool result = true;
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto here = hn::LoadU(d, logits + i), label = hn::Set(d, of_label);
    result = result && hn::AllTrue(d, AllowsEquals ? hn::Ge(label, here) : hn::Gt(label, here));
  });
  return result;
}

LogitSums sums_of_logits_loop(const float* logits, std::int64_t classes, std::int64_t label) {
  const float largest = largest_of(logits, classes);
  double exponentials = 0, sum = 0;
  for (std::int64_t i = 0; i < classes; i += kStretch)
    add_stretch(logits + i, classes - i < kStretch ? classes - i : kStretch, largest, exponentials, sum);
  const float of_label = logits[label];
  return {.log_sum_exp = static_cast<double>(largest) + std::log(exponentials),
          .logits = sum,
          .label_is_largest = !(of_label < largest) && all_below<false>(logits, label, of_label) &&
                              all_below<true>(logits + label, classes - label, of_label)};
}

template <typename T>
void logit_gradient(const float* logits, T* gradients, std::int64_t count, const LogitGradient& row) {
  const bool has_label = row.label >= 0 && row.label < count;
  float of_label = 0;
  if (has_label) {
    const double softmax = std::exp(static_cast<double>(logits[row.label]) - row.log_sum_exp);
    of_label = static_cast<float>((softmax - static_cast<double>(row.at_label)) * static_cast<double>(row.scale));
  }
  // In two parts: the rounding of a large one would be as large as the error of its exponential.
  const auto large = static_cast<float>(row.log_sum_exp);
  const auto rest = static_cast<float>(row.log_sum_exp - static_cast<double>(large));
  for_each_vector(count, [&](auto d, std::int64_t i) {
    const auto relative = hn::Sub(hn::Sub(hn::LoadU(d, logits + i), hn::Set(d, large)), hn::Set(d, rest));
    const auto difference = hn::Sub(exponential(d, relative), hn::Set(d, row.elsewhere));
    store(hn::Mul(difference, hn::Set(d, row.scale)), d, gradients + i);
  });
  if (has_label) gradients[row.label] = stored_float<T>(of_label);
}

template <typename T>
constexpr ClassifierLoops<T> kClassifierLoops{.gradient = logit_gradient<T>};

SNUG_DEFINE_TABLES(ClassifierLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

HWY_EXPORT(sums_of_logits_loop);

LogitSums sums_of_logits(const float* logits, std::int64_t classes, std::int64_t label) {
  return HWY_DYNAMIC_DISPATCH(sums_of_logits_loop)(logits, classes, label);
}

SNUG_EXPORT_TABLES(ClassifierLoops, classifier_loops)

}  // namespace snug::backends::cpu::simd
#endif
