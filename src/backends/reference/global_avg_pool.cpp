#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_global_avg_pool(const Call& call) {
  const View<const T> x = call.input_pixels<T>(0);
  const View<T> y = call.output<T>(0);
  const PixelShape shape(call.input_shape(0));
  const std::int64_t blocks = ChannelBlock::count(shape.channels);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const ChannelBlock block = ChannelBlock::at(b, shape.channels);
      BlockSums sum;
      sum.add(block, n, n + 1, shape.pixels, [&](auto, auto c, auto p) { return x(n, c, p); });
      for (std::int64_t i = 0; i < block.size; ++i)
        y(n, block.first + i) = static_cast<T>(sum.sums[i] / static_cast<double>(shape.pixels));
    }
  }
}

template <typename T>
void run_grad(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const Result<T> dx = call.result<T>();
  const View<T> dx_pixels = pixel_view_of<T>(call.outputs[0]);
  const PixelShape shape(call.output_shape(0));
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t p = 0; p < shape.pixels; ++p) {
      for (std::int64_t c = 0; c < shape.channels; ++c)
        dx.set(dx_pixels.offset(n, c, p), dy(n, c) / static_cast<double>(shape.pixels));
    }
  }
}

}  // namespace

constinit const KernelDef global_avg_pool =
    define<[]<typename T>() { return run_global_avg_pool<T>; }>("reference_global_avg_pool");
constinit const KernelDef global_avg_pool_grad =
    define<[]<typename T>() { return run_grad<T>; }>("reference_global_avg_pool_grad");

}  // namespace snug::backends::reference
