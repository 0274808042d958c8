#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_sum_to_channels(const Call& call) {
  const View<const T> x = call.input_pixels<T>(0);
  const Result<T> y = call.result<T>();
  const PixelShape shape(call.input_shape(0));
  parallel_for(call, ChannelBlock::count(shape.channels), [&](std::int64_t b) {
    const ChannelBlock block = ChannelBlock::at(b, shape.channels);
    BlockSums sum;
    sum.add(block, 0, shape.batch, shape.pixels, [&](auto n, auto c, auto p) { return x(n, c, p); });
    for (std::int64_t i = 0; i < block.size; ++i) y.set(block.first + i, sum.sums[i]);
  });
}

}  // namespace

constinit const KernelDef sum_to_channels =
    define<[]<typename T>() { return run_sum_to_channels<T>; }>("reference_sum_to_channels");

}  // namespace snug::backends::reference
