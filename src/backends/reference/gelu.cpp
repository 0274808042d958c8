#include "backends/reference/gelu.h"

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

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
  parallel_for(call, dx.elements(), [&](std::int64_t i) { dx.set(i, dy[i] * gelu_slope(x[i], by_tanh)); });
}

}  // namespace

constinit const KernelDef gelu = define<[]<typename T>() { return run_gelu<T>; }>("reference_gelu");
constinit const KernelDef gelu_grad = define<[]<typename T>() { return run_gelu_grad<T>; }>("reference_gelu_grad");

}  // namespace snug::backends::reference
