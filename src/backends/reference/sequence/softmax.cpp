#include <algorithm>
#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// The rows over which a softmax is taken lie one after the other.
struct Rows {
  std::int64_t count, columns;

  explicit Rows(const Shape& shape) : columns(shape.dims().back()) { count = shape.elements() / columns; }
};

// All reads of a row come before its first write, except that of the element being written: y may lie in x's bytes.
template <typename T>
void run_softmax(const Call& call) {
  const T* x = call.input<T>(0).data;
  T* y = call.output<T>(0).data;
  const Rows rows(call.input_shape(0));
  parallel_for(call, rows.count, [&](std::int64_t r) {
    const std::int64_t begin = r * rows.columns, end = begin + rows.columns;
    double largest = x[begin];
    for (std::int64_t i = begin + 1; i < end; ++i) largest = std::max(largest, double{x[i]});
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += std::exp(x[i] - largest);
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(std::exp(x[i] - largest) / sum);
  });
}

// dx = y * (dy - sum of dy * y)
template <typename T>
void run_grad(const Call& call) {
  const T* dy = call.input<T>(0).data;
  const T* y = call.input<T>(1).data;
  T* dx = call.output<T>(0).data;
  const Rows rows(call.input_shape(1));
  parallel_for(call, rows.count, [&](std::int64_t r) {
    const std::int64_t begin = r * rows.columns, end = begin + rows.columns;
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += double{dy[i]} * y[i];
    for (std::int64_t i = begin; i < end; ++i) dx[i] = static_cast<T>(y[i] * (dy[i] - sum));
  });
}

}  // namespace

constinit const KernelDef softmax = define<[]<typename T>() { return run_softmax<T>; }>("reference_softmax");
constinit const KernelDef softmax_grad = define<[]<typename T>() { return run_grad<T>; }>("reference_softmax_grad");

}  // namespace snug::backends::reference
