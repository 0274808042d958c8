#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/sequence/sigmoid.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_silu(const Call& call) {
  const auto x = call.elementwise<T>(0);
  const Result<T> y = call.result<T>();
  parallel_for(call, y.elements(), [&](std::int64_t i) { y.set(i, silu_of(x[i])); });
}

template <typename T>
void run_silu_grad(const Call& call) {
  const auto dy = call.elementwise<T>(0);
  const auto x = call.elementwise<T>(1);
  const Result<T> dx = call.result<T>();
  parallel_for(call, dx.elements(), [&](std::int64_t i) { dx.set(i, dy[i] * silu_slope(x[i])); });
}

}  // namespace

constinit const KernelDef silu = define<[]<typename T>() { return run_silu<T>; }>("reference_silu");
constinit const KernelDef silu_grad = define<[]<typename T>() { return run_silu_grad<T>; }>("reference_silu_grad");

}  // namespace snug::backends::reference
