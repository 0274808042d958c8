#include "backends/cpu/sequence/loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/activation_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/math-inl.h"
#include "backends/cpu/simd/storage-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

// Calls body(at) with the function that computes an activation and its slope, so that no loop has to ask which one it is.
template <typename Body>
HWY_INLINE void with_activation(Activation which, const Body& body) {
  switch (which) {
    case Activation::gelu:
      return body([](auto d, auto x) { return gelu_at(d, x); });
    case Activation::gelu_by_tanh:
      return body([](auto d, auto x) { return gelu_by_tanh_at(d, x); });
    case Activation::silu:
      return body([](auto d, auto x) { return silu_at(d, x); });
    case Activation::sigmoid:
      return body([](auto d, auto x) { return sigmoid_at(d, x); });
  }
}

template <typename T>
void apply(Activation which, const T* x, T* y, std::int64_t count) {
  with_activation(which, [&](const auto& at) {
    for_each_vector(count, [&](auto d, std::int64_t i) { store(at(d, load(d, x + i)).value, d, y + i); });
  });
}

template <typename T>
void gradient(Activation which, const T* dy, const T* x, const T* addend, T* dx, std::int64_t count) {
  with_activation(which, [&](const auto& at) {
    for_each_vector(count, [&](auto d, std::int64_t i) {
      const auto passed = hn::Mul(load(d, dy + i), at(d, load(d, x + i)).slope);
      store(addend == nullptr ? passed : hn::Add(load(d, addend + i), rounded<T>(d, passed)), d, dx + i);
    });
  });
}

template <typename T>
void gate(Activation which, const T* x, T* y, std::int64_t count) {
  with_activation(which, [&](const auto& at) {
    for_each_vector(
        count, [&](auto d, std::int64_t i) { store(hn::Mul(at(d, load(d, x + i)).value, load(d, x + count + i)), d, y + i); });
  });
}

template <typename T>
void gate_gradient(Activation which, const T* dy, const T* x, T* dx, std::int64_t count) {
  with_activation(which, [&](const auto& at) {
    for_each_vector(count, [&](auto d, std::int64_t i) {
      const auto [value, slope] = at(d, load(d, x + i));
      const auto other = load(d, x + count + i);
      const auto gradient_here = load(d, dy + i);
      store(hn::Mul(hn::Mul(gradient_here, other), slope), d, dx + i);
      store(hn::Mul(gradient_here, value), d, dx + count + i);
    });
  });
}

template <typename T>
constexpr ActivationLoops<T> kActivationLoops{
    .apply = apply<T>, .gradient = gradient<T>, .gate = gate<T>, .gate_gradient = gate_gradient<T>};

SNUG_DEFINE_TABLES(ActivationLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

SNUG_EXPORT_TABLES(ActivationLoops, activation_loops)

}  // namespace snug::backends::cpu::simd
#endif
