#include "ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/channel_block.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::reference {

namespace {

using ops::BatchNormGeometry;

// Mean and variance of an example's group [groups,C], or fixed ones for all [C]; `mean` without data where only the variance is
// needed.
template <typename T>
struct Statistics {
  View<const T> mean, variance;
  bool fixed;
  double epsilon;

  double mean_of(std::int64_t group, std::int64_t c) const { return fixed ? mean(c) : mean(group, c); }
  double inverse_deviation(std::int64_t group, std::int64_t c) const {
    return 1.0 / std::sqrt((fixed ? variance(c) : variance(group, c)) + epsilon);
  }
};

template <typename T>
Statistics<T> statistics_of(const Call& call, std::size_t mean, std::size_t variance) {
  return {.mean = call.input<T>(mean),
          .variance = call.input<T>(variance),
          .fixed = call.input_shape(mean).rank() == 1,
          .epsilon = call.attributes.real("epsilon")};
}

// What is needed to normalize a block of channels of one example's group, in double.
struct BlockStatistics {
  double mean[kBlock];
  double inverse_deviation[kBlock];

  template <typename T>
  BlockStatistics(const Statistics<T>& statistics, std::int64_t group, ChannelBlock block) {
    for (std::int64_t i = 0; i < block.size; ++i) {
      mean[i] = statistics.mean_of(group, block.first + i);
      inverse_deviation[i] = statistics.inverse_deviation(group, block.first + i);
    }
  }
  double normalized(std::int64_t i, double x) const { return (x - mean[i]) * inverse_deviation[i]; }
};

// Two passes: the mean, then the squared differences from it. A group without valid examples gets mean 0 and variance 1.
template <typename T>
void run_statistics(const Call& call) {
  const View<const T> x = call.input_pixels<T>(0);
  const View<T> mean = call.output<T>(0);
  const View<T> variance = call.output<T>(1);
  const auto g = BatchNormGeometry::from(call.input_shape(0), call.attributes);
  const std::int64_t valid_examples = call.scalars(1).valid_examples;
  const std::int64_t blocks = ChannelBlock::count(g.channels);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t group = 0; group < g.groups; ++group) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const ChannelBlock block = ChannelBlock::at(b, g.channels);
      const std::int64_t begin = group * g.group_size;
      const std::int64_t valid = g.valid_in_group(group, valid_examples);
      const auto count = static_cast<double>(valid * g.pixels);
      BlockSums sum;
      sum.add(block, begin, begin + valid, g.pixels, [&](auto n, auto c, auto p) { return x(n, c, p); });
      double means[kBlock];
      for (std::int64_t i = 0; i < block.size; ++i) means[i] = valid > 0 ? sum.sums[i] / count : 0.0;
      BlockSums squares;
      squares.add(block, begin, begin + valid, g.pixels, [&](auto n, auto c, auto p) {
        const double difference = x(n, c, p) - means[c - block.first];
        return difference * difference;
      });
      for (std::int64_t i = 0; i < block.size; ++i) {
        mean(group, block.first + i) = static_cast<T>(means[i]);
        variance(group, block.first + i) = static_cast<T>(valid > 0 ? squares.sums[i] / count : 1.0);
      }
    }
  }
}

template <typename T>
void run_apply(const Call& call) {
  const View<const T> x = call.input_pixels<T>(0);
  const auto statistics = statistics_of<T>(call, 1, 2);
  const View<const T> weight = call.input<T>(3);
  const View<const T> bias = call.input<T>(4);
  const View<T> y = pixel_view_of<T>(call.outputs[0]);
  const auto g = BatchNormGeometry::from(call.input_shape(0), call.attributes);
  const bool with_relu = ops::batch_norm_with_relu(call.attributes);
  const std::int64_t blocks = ChannelBlock::count(g.channels);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const ChannelBlock block = ChannelBlock::at(b, g.channels);
      const BlockStatistics of_block(statistics, n / g.group_size, block);
      for (std::int64_t p = 0; p < g.pixels; ++p) {
        for (std::int64_t i = 0; i < block.size; ++i) {
          const std::int64_t c = block.first + i;
          const T value = static_cast<T>(of_block.normalized(i, x(n, c, p)) * weight(c) + bias(c));
          y(n, c, p) = with_relu && value <= 0 ? T{0} : value;  // NaN passes, as through a separate ReLU
        }
      }
    }
  }
}

// The groups update the running statistics in turn, rounded each time, exactly as that many microbatches would. A group of v of
// the step's B rows has the momentum 1 - (1 - momentum)^(v / B), so that a step has the same weight however it is split.
template <typename T>
void run_running(const Call& call) {
  const View<const T> mean = call.input<T>(0);
  const View<const T> variance = call.input<T>(1);
  const View<const T> old_mean = call.input<T>(2);
  const View<const T> old_variance = call.input<T>(3);
  const View<T> running_mean = call.output<T>(0);
  const View<T> running_variance = call.output<T>(1);
  const Scalars scalars = call.scalars(4);
  const double momentum = call.attributes.real("momentum");
  const BatchNormGeometry g{.batch = call.attributes.integer("batch"),
                            .channels = call.input_shape(0)[1],
                            .pixels = call.attributes.integer("pixels"),
                            .group_size = call.attributes.integer("group_size"),
                            .groups = call.input_shape(0)[0],
                            .rows_per_example = rows_per_example(call.attributes)};
  parallel_for(call, g.channels, [&](std::int64_t c) {
    T moving_mean = old_mean(c);
    T moving_variance = old_variance(c);
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t valid = g.valid_in_group(group, scalars.valid_examples);
      if (valid == 0) continue;
      const auto share = static_cast<double>(valid) / static_cast<double>(scalars.batch_examples * g.rows_per_example);
      const double decay = share == 1.0 ? momentum : 1.0 - std::pow(1.0 - momentum, share);
      const auto count = static_cast<double>(valid * g.pixels);
      const double unbiased = count > 1 ? variance(group, c) * (count / (count - 1)) : variance(group, c);
      moving_mean = static_cast<T>((1.0 - decay) * moving_mean + decay * mean(group, c));
      moving_variance = static_cast<T>((1.0 - decay) * moving_variance + decay * unbiased);
    }
    running_mean(c) = moving_mean;
    running_variance(c) = moving_variance;
  });
}

// The gradient of a fused ReLU's output as batch norm gets it: it passes where `apply` gave a positive number.
template <typename T>
struct ThroughRelu {
  bool with_relu;
  View<const T> weight, bias;  // read only with a ReLU

  ThroughRelu(const Call& call, std::size_t weight_input, std::size_t bias_input)
      : with_relu(ops::batch_norm_with_relu(call.attributes)),
        weight(call.input<T>(with_relu ? weight_input : 0)),
        bias(call.input<T>(with_relu ? bias_input : 0)) {}

  double operator()(double dy, double normalized, std::int64_t c) const {
    return !with_relu || static_cast<T>(normalized * weight(c) + bias(c)) > 0 ? dy : 0.0;
  }
};

template <typename T>
void run_grad_reduce(const Call& call) {
  const View<const T> dy = call.input_pixels<T>(0);
  const View<const T> x = call.input_pixels<T>(1);
  const auto statistics = statistics_of<T>(call, 2, 3);
  const ThroughRelu<T> through_relu(call, 4, 5);
  const View<T> weight_sums = call.output<T>(0);
  const View<T> bias_sums = call.output<T>(1);
  const auto g = BatchNormGeometry::from(call.input_shape(1), call.attributes);
  const std::int64_t blocks = ChannelBlock::count(g.channels);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t group = 0; group < g.groups; ++group) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const ChannelBlock block = ChannelBlock::at(b, g.channels);
      const BlockStatistics of_block(statistics, group, block);
      const std::int64_t begin = group * g.group_size;
      const std::int64_t end = std::min(g.batch, begin + g.group_size);
      BlockSums for_weight;
      BlockSums for_bias;
      for_weight.add(block, begin, end, g.pixels, [&](auto n, auto c, auto p) {
        const double normalized = of_block.normalized(c - block.first, x(n, c, p));
        return through_relu(dy(n, c, p), normalized, c) * normalized;
      });
      for_bias.add(block, begin, end, g.pixels, [&](auto n, auto c, auto p) {
        return through_relu(dy(n, c, p), of_block.normalized(c - block.first, x(n, c, p)), c);
      });
      for (std::int64_t i = 0; i < block.size; ++i) {
        weight_sums(group, block.first + i) = static_cast<T>(for_weight.sums[i]);
        bias_sums(group, block.first + i) = static_cast<T>(for_bias.sums[i]);
      }
    }
  }
}

// dx = weight / deviation * (dy - mean of dy - normalized x * mean of dy * normalized x), the means over the group's valid
// elements. Padding is not in the statistics, and its gradient is 0.
template <typename T>
void run_grad_input(const Call& call) {
  const View<const T> dy = call.input_pixels<T>(0);
  const View<const T> x = call.input_pixels<T>(1);
  const auto statistics = statistics_of<T>(call, 2, 3);
  const View<const T> weight = call.input<T>(4);
  const View<const T> weight_sums = call.input<T>(5);
  const View<const T> bias_sums = call.input<T>(6);
  const std::int64_t valid_examples = call.scalars(7).valid_examples;
  const ThroughRelu<T> through_relu(call, 4, 8);
  const Result<T> dx = call.result<T>();
  const View<T> dx_pixels = pixel_view_of<T>(call.outputs[0]);
  const auto g = BatchNormGeometry::from(call.input_shape(1), call.attributes);
  const std::int64_t valid_rows = g.valid_rows(valid_examples);
  const std::int64_t blocks = ChannelBlock::count(g.channels);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const ChannelBlock block = ChannelBlock::at(b, g.channels);
      const std::int64_t group = n / g.group_size;
      const auto count = static_cast<double>(g.valid_in_group(group, valid_examples) * g.pixels);
      const BlockStatistics of_block(statistics, group, block);
      double scale[kBlock];
      double mean_dy[kBlock];
      double mean_product[kBlock];
      for (std::int64_t i = 0; i < block.size; ++i) {
        scale[i] = weight(block.first + i) * of_block.inverse_deviation[i];
        mean_dy[i] = bias_sums(group, block.first + i) / count;
        mean_product[i] = weight_sums(group, block.first + i) / count;
      }
      for (std::int64_t p = 0; p < g.pixels; ++p) {
        for (std::int64_t i = 0; i < block.size; ++i) {
          const std::int64_t c = block.first + i;
          const double normalized = of_block.normalized(i, x(n, c, p));
          const double centerd = through_relu(dy(n, c, p), normalized, c) - mean_dy[i] - normalized * mean_product[i];
          dx.set(dx_pixels.offset(n, c, p), n < valid_rows ? scale[i] * centerd : 0.0);
        }
      }
    }
  }
}

template <typename T>
void run_grad_fixed(const Call& call) {
  const View<const T> dy = call.input_pixels<T>(0);
  const View<const T> variance = call.input<T>(1);
  const View<const T> weight = call.input<T>(2);
  const double epsilon = call.attributes.real("epsilon");
  const Result<T> dx = call.result<T>();
  const View<T> dx_pixels = pixel_view_of<T>(call.outputs[0]);
  const PixelShape shape(call.input_shape(0));
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t p = 0; p < shape.pixels; ++p) {
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        dx.set(dx_pixels.offset(n, c, p), dy(n, c, p) * weight(c) / std::sqrt(variance(c) + epsilon));
      }
    }
  }
}

constexpr Signature kStatistics{.inputs = {Element::real, Element::scalars}};
constexpr Signature kApply{
    .inputs = {Element::real, Element::real, Element::real, Element::real, Element::real, Element::scalars}};
constexpr Signature kRunning{.inputs = {Element::real, Element::real, Element::real, Element::real, Element::scalars}};
constexpr Signature kGradInput{.inputs = {Element::real, Element::real, Element::real, Element::real, Element::real,
                                          Element::real, Element::real, Element::scalars}};

}  // namespace

constinit const KernelDef batch_norm_statistics =
    define<[]<typename T>() { return run_statistics<T>; }, kStatistics>("reference_batch_norm_statistics");
constinit const KernelDef batch_norm_apply =
    define<[]<typename T>() { return run_apply<T>; }, kApply>("reference_batch_norm_apply");
constinit const KernelDef batch_norm_running =
    define<[]<typename T>() { return run_running<T>; }, kRunning>("reference_batch_norm_running");
constinit const KernelDef batch_norm_grad_reduce =
    define<[]<typename T>() { return run_grad_reduce<T>; }>("reference_batch_norm_grad_reduce");
constinit const KernelDef batch_norm_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }, kGradInput>("reference_batch_norm_grad_input");
constinit const KernelDef batch_norm_grad_fixed =
    define<[]<typename T>() { return run_grad_fixed<T>; }>("reference_batch_norm_grad_fixed");

}  // namespace snug::backends::reference
