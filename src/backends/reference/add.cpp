#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_add(const Call& call) {
  const auto a = call.elementwise<T>(0);
  const auto b = call.elementwise<T>(1);
  const Result<T> y = call.result<T>();
  parallel_for(call, y.elements(), [&](std::int64_t i) {
    const T sum = a[i] + b[i];
    y.set(i, sum);
  });
}

}  // namespace

constinit const KernelDef add = define<[]<typename T>() { return run_add<T>; }>("reference_add");

}  // namespace snug::backends::reference
