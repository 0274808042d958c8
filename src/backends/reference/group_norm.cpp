#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// The channels of group g are [g * channels, (g + 1) * channels).
struct Geometry {
  std::int64_t batch, groups, channels, pixels;

  explicit Geometry(const Call& call, const Shape& x) : groups(call.attributes.integer("groups")) {
    const PixelShape shape(x);
    batch = shape.batch;
    channels = shape.channels / groups;
    pixels = shape.pixels;
  }
  double count() const { return static_cast<double>(channels * pixels); }
};

// Sum of value(c, p) over the channels of group g and all pixels.
template <typename Value>
double sum_over_group(const Geometry& g, std::int64_t group, const Value& value) {
  double sum = 0;
  for (std::int64_t p = 0; p < g.pixels; ++p) {
    for (std::int64_t c = group * g.channels; c < (group + 1) * g.channels; ++c) sum += value(c, p);
  }
  return sum;
}

// All reads of a group come before its first write, except that of the element being written: y may lie in x's bytes.
template <typename T>
void run_group_norm(const Call& call) {
  const View<const T> x = call.input_pixels<T>(0);
  const View<const T> weight = call.input<T>(1);
  const View<const T> bias = call.input<T>(2);
  const View<T> y = pixel_view_of<T>(call.outputs[0]);
  const View<T> mean = call.output<T>(1);
  const View<T> variance = call.output<T>(2);
  const double epsilon = call.attributes.real("epsilon");
  const Geometry g(call, call.input_shape(0));
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const double center = sum_over_group(g, group, [&](auto c, auto p) { return x(n, c, p); }) / g.count();
      const double spread = sum_over_group(g, group,
                                           [&](auto c, auto p) {
                                             const double difference = x(n, c, p) - center;
                                             return difference * difference;
                                           }) /
                            g.count();
      const double inverse_deviation = 1.0 / std::sqrt(spread + epsilon);
      for (std::int64_t p = 0; p < g.pixels; ++p) {
        for (std::int64_t c = group * g.channels; c < (group + 1) * g.channels; ++c) {
          y(n, c, p) = static_cast<T>((x(n, c, p) - center) * inverse_deviation * weight(c) + bias(c));
        }
      }
      mean(n, group) = static_cast<T>(center);
      variance(n, group) = static_cast<T>(spread);
    }
  }
}

// With d = weight * dy: dx = (d - mean of d - normalized x * mean of d * normalized x) / deviation, the means over the group.
template <typename T>
void run_grad_input(const Call& call) {
  const View<const T> dy = call.input_pixels<T>(0);
  const View<const T> x = call.input_pixels<T>(1);
  const View<const T> mean = call.input<T>(2);
  const View<const T> variance = call.input<T>(3);
  const View<const T> weight = call.input<T>(4);
  const Result<T> dx = call.result<T>();
  const View<T> dx_pixels = pixel_view_of<T>(call.outputs[0]);
  const double epsilon = call.attributes.real("epsilon");
  const Geometry g(call, call.input_shape(1));
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const double center = mean(n, group);
      const double inverse_deviation = 1.0 / std::sqrt(variance(n, group) + epsilon);
      const auto weighted = [&](auto c, auto p) { return double{weight(c)} * dy(n, c, p); };
      const auto normalized = [&](auto c, auto p) { return (x(n, c, p) - center) * inverse_deviation; };
      const double mean_weighted = sum_over_group(g, group, weighted) / g.count();
      const double mean_product =
          sum_over_group(g, group, [&](auto c, auto p) { return weighted(c, p) * normalized(c, p); }) / g.count();
      for (std::int64_t p = 0; p < g.pixels; ++p) {
        for (std::int64_t c = group * g.channels; c < (group + 1) * g.channels; ++c) {
          const double centerd = weighted(c, p) - mean_weighted - normalized(c, p) * mean_product;
          dx.set(dx_pixels.offset(n, c, p), centerd * inverse_deviation);
        }
      }
    }
  }
}

template <typename T>
void run_grad_parameters(const Call& call) {
  const View<const T> dy = call.input_pixels<T>(0);
  const View<const T> x = call.input_pixels<T>(1);
  const View<const T> mean = call.input<T>(2);
  const View<const T> variance = call.input<T>(3);
  const View<T> weight_gradient = call.output<T>(0);
  const View<T> bias_gradient = call.output<T>(1);
  const double epsilon = call.attributes.real("epsilon");
  const Geometry g(call, call.input_shape(1));
  const std::int64_t channels = g.groups * g.channels;
  parallel_for(call, ChannelBlock::count(channels), [&](std::int64_t b) {
    const ChannelBlock block = ChannelBlock::at(b, channels);
    BlockSums for_weight;
    BlockSums for_bias;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      double inverse_deviation[kBlock];
      for (std::int64_t i = 0; i < block.size; ++i) {
        inverse_deviation[i] = 1.0 / std::sqrt(variance(n, (block.first + i) / g.channels) + epsilon);
      }
      for_weight.add(block, n, n + 1, g.pixels, [&](auto, auto c, auto p) {
        return dy(n, c, p) * ((x(n, c, p) - double{mean(n, c / g.channels)}) * inverse_deviation[c - block.first]);
      });
      for_bias.add(block, n, n + 1, g.pixels, [&](auto, auto c, auto p) { return dy(n, c, p); });
    }
    for (std::int64_t i = 0; i < block.size; ++i) {
      weight_gradient(block.first + i) = static_cast<T>(for_weight.sums[i]);
      bias_gradient(block.first + i) = static_cast<T>(for_bias.sums[i]);
    }
  });
}

}  // namespace

constinit const KernelDef group_norm = define<[]<typename T>() { return run_group_norm<T>; }>("reference_group_norm");
constinit const KernelDef group_norm_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_group_norm_grad_input");
constinit const KernelDef group_norm_grad_parameters =
    define<[]<typename T>() { return run_grad_parameters<T>; }>("reference_group_norm_grad_parameters");

}  // namespace snug::backends::reference
