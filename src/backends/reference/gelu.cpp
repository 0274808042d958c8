#include <cmath>
#include <numbers>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

constexpr double kHalfRoot = std::numbers::sqrt2 / 2;
constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

// With the complementary error function, which is precise where x is far below zero. Minus infinity becomes NaN, so that an
// overflow stays visible.
double gelu_of(double x, bool by_tanh) {
  if (by_tanh) return 0.5 * x * (1 + std::tanh(kTanhScale * x * (1 + kCubic * x * x)));
  return 0.5 * x * std::erfc(-x * kHalfRoot);
}

// The derivative of gelu. Its second term is zero far from zero, where computing it would be infinity times 0.
double slope_of(double x, bool by_tanh) {
  if (by_tanh) {
    const double t = std::tanh(kTanhScale * x * (1 + kCubic * x * x));
    const double steepness = 1 - t * t;
    return 0.5 * (1 + t) + (steepness == 0 ? 0 : 0.5 * x * steepness * kTanhScale * (1 + 3 * kCubic * x * x));
  }
  const double density = std::exp(-0.5 * x * x) * kTanhScale / 2;
  return 0.5 * std::erfc(-x * kHalfRoot) + (density == 0 ? 0 : x * density);
}

template <typename T>
void run_gelu(const Call& call) {
  const bool by_tanh = call.attributes.integer("tanh") != 0;
  const auto x = call.elementwise<T>(0);
  const Result<T> y = call.result<T>();
  parallel_for(call, y.elements(), [&](std::int64_t i) { y.set(i, gelu_of(x[i], by_tanh)); });
}

template <typename T>
void run_gelu_grad(const Call& call) {
  const bool by_tanh = call.attributes.integer("tanh") != 0;
  const auto dy = call.elementwise<T>(0);
  const auto x = call.elementwise<T>(1);
  const Result<T> dx = call.result<T>();
  parallel_for(call, dx.elements(), [&](std::int64_t i) { dx.set(i, dy[i] * slope_of(x[i], by_tanh)); });
}

}  // namespace

constinit const KernelDef gelu = define<[]<typename T>() { return run_gelu<T>; }>("reference_gelu");
constinit const KernelDef gelu_grad = define<[]<typename T>() { return run_gelu_grad<T>; }>("reference_gelu_grad");

}  // namespace snug::backends::reference
