#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// Sum of value(c) over the columns.
template <typename Value>
double sum_over(std::int64_t columns, const Value& value) {
  double sum = 0;
  for (std::int64_t c = 0; c < columns; ++c) sum += value(c);
  return sum;
}

// All reads of a row come before its first write, except that of the element being written: y may lie in x's bytes.
template <typename T>
void run_layer_norm(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<const T> weight = call.input<T>(1);
  const View<const T> bias = call.input<T>(2);
  const View<T> y = call.output<T>(0);
  const View<T> mean = call.output<T>(1);
  const View<T> inverse_std = call.output<T>(2);
  const double epsilon = call.attributes.real("epsilon");
  const std::int64_t columns = call.input_shape(0)[1];
  const auto count = static_cast<double>(columns);
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    const double center = sum_over(columns, [&](auto c) { return x(r, c); }) / count;
    const double variance = sum_over(columns,
                                     [&](auto c) {
                                       const double difference = x(r, c) - center;
                                       return difference * difference;
                                     }) /
                            count;
    const double inverse = 1.0 / std::sqrt(variance + epsilon);
    for (std::int64_t c = 0; c < columns; ++c) y(r, c) = static_cast<T>((x(r, c) - center) * inverse * weight(c) + bias(c));
    mean(r) = static_cast<T>(center);
    inverse_std(r) = static_cast<T>(inverse);
  });
}

// With d = weight * dy: dx = (d - mean of d - normalized x * mean of d * normalized x) * inverse_std, the means over the row.
template <typename T>
void run_grad_input(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const View<const T> weight = call.input<T>(2);
  const View<const T> mean = call.input<T>(3);
  const View<const T> inverse_std = call.input<T>(4);
  const Result<T> dx = call.result<T>();
  const std::int64_t columns = call.input_shape(0)[1];
  const auto count = static_cast<double>(columns);
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    const double center = mean(r);
    const double inverse = inverse_std(r);
    const auto weighted = [&](auto c) { return double{weight(c)} * dy(r, c); };
    const auto normalized = [&](auto c) { return (x(r, c) - center) * inverse; };
    const double mean_weighted = sum_over(columns, weighted) / count;
    const double mean_product = sum_over(columns, [&](auto c) { return weighted(c) * normalized(c); }) / count;
    for (std::int64_t c = 0; c < columns; ++c)
      dx.set(dx.offset(r, c), (weighted(c) - mean_weighted - normalized(c) * mean_product) * inverse);
  });
}

template <typename T>
void run_grad_parameters(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const View<const T> mean = call.input<T>(2);
  const View<const T> inverse_std = call.input<T>(3);
  const View<T> weight_gradient = call.output<T>(0);
  const View<T> bias_gradient = call.output<T>(1);
  const std::int64_t rows = call.input_shape(0)[0], columns = call.input_shape(0)[1];
  parallel_for(call, ChannelBlock::count(columns), [&](std::int64_t b) {
    const ChannelBlock block = ChannelBlock::at(b, columns);
    BlockSums for_weight;
    BlockSums for_bias;
    for_weight.add(block, 0, rows, 1,
                   [&](auto r, auto c, auto) { return dy(r, c) * ((x(r, c) - double{mean(r)}) * double{inverse_std(r)}); });
    for_bias.add(block, 0, rows, 1, [&](auto r, auto c, auto) { return dy(r, c); });
    for (std::int64_t i = 0; i < block.size; ++i) {
      weight_gradient(block.first + i) = static_cast<T>(for_weight.sums[i]);
      bias_gradient(block.first + i) = static_cast<T>(for_bias.sums[i]);
    }
  });
}

}  // namespace

constinit const KernelDef layer_norm = define<[]<typename T>() { return run_layer_norm<T>; }>("reference_layer_norm");
constinit const KernelDef layer_norm_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_layer_norm_grad_input");
constinit const KernelDef layer_norm_grad_parameters =
    define<[]<typename T>() { return run_grad_parameters<T>; }>("reference_layer_norm_grad_parameters");

}  // namespace snug::backends::reference
