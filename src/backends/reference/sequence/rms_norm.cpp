#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// All reads of a row come before its first write, except that of the element being written: y may lie in x's bytes.
template <typename T>
void run_rms_norm(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<const T> weight = call.input<T>(1);
  const View<T> y = call.output<T>(0);
  const View<T> inverse_rms = call.output<T>(1);
  const double epsilon = call.attributes.real("epsilon");
  const std::int64_t columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    double squares = 0;
    for (std::int64_t c = 0; c < columns; ++c) squares += double{x(r, c)} * x(r, c);
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (std::int64_t c = 0; c < columns; ++c) y(r, c) = static_cast<T>(x(r, c) * inverse * weight(c));
    inverse_rms(r) = static_cast<T>(inverse);
  });
}

// With d = weight * dy: dx = (d - normalized x * mean of d * normalized x) * inverse_rms, the mean over the row.
template <typename T>
void run_grad_input(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const View<const T> weight = call.input<T>(2);
  const View<const T> inverse_rms = call.input<T>(3);
  const Result<T> dx = call.result<T>();
  const std::int64_t columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    const double inverse = inverse_rms(r);
    const auto weighted = [&](auto c) { return double{weight(c)} * dy(r, c); };
    double product = 0;
    for (std::int64_t c = 0; c < columns; ++c) product += weighted(c) * (x(r, c) * inverse);
    const double mean_product = product / static_cast<double>(columns);
    for (std::int64_t c = 0; c < columns; ++c)
      dx.set(dx.offset(r, c), (weighted(c) - x(r, c) * inverse * mean_product) * inverse);
  });
}

template <typename T>
void run_grad_weight(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const View<const T> inverse_rms = call.input<T>(2);
  const Result<T> gradient = call.result<T>();
  const std::int64_t rows = call.input_shape(0)[0], columns = call.input_shape(0)[1];
  parallel_for(call, ChannelBlock::count(columns), [&](std::int64_t b) {
    const ChannelBlock block = ChannelBlock::at(b, columns);
    BlockSums sum;
    sum.add(block, 0, rows, 1, [&](auto r, auto c, auto) { return dy(r, c) * (x(r, c) * double{inverse_rms(r)}); });
    for (std::int64_t i = 0; i < block.size; ++i) gradient.set(block.first + i, sum.sums[i]);
  });
}

}  // namespace

constinit const KernelDef rms_norm = define<[]<typename T>() { return run_rms_norm<T>; }>("reference_rms_norm");
constinit const KernelDef rms_norm_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_rms_norm_grad_input");
constinit const KernelDef rms_norm_grad_weight =
    define<[]<typename T>() { return run_grad_weight<T>; }>("reference_rms_norm_grad_weight");

}  // namespace snug::backends::reference
