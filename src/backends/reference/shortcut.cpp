#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_shortcut(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const std::int64_t stride = call.attributes.integer("stride");
  const std::int64_t in_channels = call.input_shape(0)[1];
  const Shape& shape = call.output_shape(0);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t h = 0; h < shape[2]; ++h) {
      for (std::int64_t w = 0; w < shape[3]; ++w) {
        for (std::int64_t c = 0; c < shape[1]; ++c) y(n, c, h, w) = c < in_channels ? x(n, c, h * stride, w * stride) : T{0};
      }
    }
  }
}

template <typename T>
void run_grad(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const Result<T> dx = call.result<T>();
  const std::int64_t stride = call.attributes.integer("stride");
  const Shape& shape = call.output_shape(0);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t h = 0; h < shape[2]; ++h) {
      for (std::int64_t w = 0; w < shape[3]; ++w) {
        const bool taken = h % stride == 0 && w % stride == 0;
        for (std::int64_t c = 0; c < shape[1]; ++c)
          dx.set(dx.offset(n, c, h, w), taken ? dy(n, c, h / stride, w / stride) : T{0});
      }
    }
  }
}

}  // namespace

constinit const KernelDef shortcut = define<[]<typename T>() { return run_shortcut<T>; }>("reference_shortcut");
constinit const KernelDef shortcut_grad = define<[]<typename T>() { return run_grad<T>; }>("reference_shortcut_grad");

}  // namespace snug::backends::reference
