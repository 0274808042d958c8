#include "ops/sequence/dynamic_conv.h"

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

using ops::DynamicConvGeometry;

// Where a convolution's weights lie, which all rows share or each has its own.
template <typename T>
struct Weights {
  const T* data;
  std::int64_t of_row, kernel;

  double operator()(std::int64_t row, std::int64_t head, std::int64_t tap) const {
    return data[row * of_row + head * kernel + tap];
  }
};

template <typename T>
Weights<T> weights_of(const Call& call, const DynamicConvGeometry& g) {
  return {.data = call.input<T>(1).data, .of_row = g.weights_of_row(call.input_shape(1)), .kernel = g.kernel};
}

DynamicConvGeometry geometry_of(const Call& call) { return DynamicConvGeometry::from(call.input_shape(0), call.attributes); }

template <typename T>
void run_forward(const Call& call) {
  const DynamicConvGeometry g = geometry_of(call);
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const Weights<T> weight = weights_of<T>(call, g);
  parallel_for(call, g.rows(), [&](std::int64_t r) {
    const std::int64_t position = r % g.length;
    for (std::int64_t c = 0; c < g.columns; ++c) {
      double sum = 0;
      for (std::int64_t k = g.first_tap(position); k < g.end_of_taps(position); ++k)
        sum += weight(r, c / g.head_size(), k) * x(r + k - g.left, c);
      y(r, c) = static_cast<T>(sum);
    }
  });
}

template <typename T>
void run_grad_input(const Call& call) {
  const DynamicConvGeometry g = geometry_of(call);
  const View<const T> dy = call.input<T>(0);
  const Weights<T> weight = weights_of<T>(call, g);
  const Result<T> dx = call.result<T>();
  parallel_for(call, g.rows(), [&](std::int64_t r) {
    const std::int64_t position = r % g.length;
    for (std::int64_t c = 0; c < g.columns; ++c) {
      double sum = 0;
      for (std::int64_t reader = g.first_reader(position); reader < g.end_of_readers(position); ++reader) {
        const std::int64_t row = r + reader - position;
        sum += weight(row, c / g.head_size(), position + g.left - reader) * dy(row, c);
      }
      dx.set(dx.offset(r, c), sum);
    }
  });
}

// The gradient of one row's tap of a head; 0 where the tap lies beyond the example.
template <typename T>
double tap_gradient(const DynamicConvGeometry& g, const View<const T>& dy, const View<const T>& x, std::int64_t row,
                    std::int64_t head, std::int64_t tap) {
  const std::int64_t position = row % g.length;
  if (tap < g.first_tap(position) || tap >= g.end_of_taps(position)) return 0;
  double sum = 0;
  for (std::int64_t c = head * g.head_size(); c < (head + 1) * g.head_size(); ++c)
    sum += double{dy(row, c)} * x(row + tap - g.left, c);
  return sum;
}

template <typename T>
void run_lightweight_grad_weight(const Call& call) {
  const DynamicConvGeometry g = geometry_of(call);
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const Result<T> dweight = call.result<T>();
  parallel_for(call, g.heads * g.kernel, [&](std::int64_t i) {
    const std::int64_t head = i / g.kernel, tap = i % g.kernel;
    double sum = 0;
    for (std::int64_t r = 0; r < g.rows(); ++r) sum += tap_gradient(g, dy, x, r, head, tap);
    dweight.set(dweight.offset(head, tap), sum);
  });
}

template <typename T>
void run_dynamic_grad_weight(const Call& call) {
  const DynamicConvGeometry g = geometry_of(call);
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const Result<T> dweight = call.result<T>();
  parallel_for(call, g.rows(), [&](std::int64_t r) {
    for (std::int64_t i = 0; i < g.heads * g.kernel; ++i)
      dweight.set(dweight.offset(r, i), tap_gradient(g, dy, x, r, i / g.kernel, i % g.kernel));
  });
}

}  // namespace

constinit const KernelDef lightweight_conv = define<[]<typename T>() { return run_forward<T>; }>("reference_lightweight_conv");
constinit const KernelDef lightweight_conv_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_lightweight_conv_grad_input");
constinit const KernelDef lightweight_conv_grad_weight =
    define<[]<typename T>() { return run_lightweight_grad_weight<T>; }>("reference_lightweight_conv_grad_weight");
constinit const KernelDef dynamic_conv = define<[]<typename T>() { return run_forward<T>; }>("reference_dynamic_conv");
constinit const KernelDef dynamic_conv_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_dynamic_conv_grad_input");
constinit const KernelDef dynamic_conv_grad_weight =
    define<[]<typename T>() { return run_dynamic_grad_weight<T>; }>("reference_dynamic_conv_grad_weight");

}  // namespace snug::backends::reference
