#include "ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"
#include "base/error.h"
#include "ir/scalars.h"

// Batch norm in as few passes over memory as its definition allows: one for the statistics, one to normalize (with the ReLU), and
// in backward one for the sums and one for the data gradient (with the ReLU's, and the sum with another gradient). Each thread
// adds up its own rows in double, and the threads' sums are added in order, so a result depends only on how many threads were
// asked for.

namespace snug::backends::cpu {

namespace {

using ops::BatchNormGeometry;

std::optional<std::string> objection_to(const Type& type) {
  if (!is_stored(type.dtype)) return to_string(type) + " is not f32, bf16 or f16";
  const bool rows_of_channels =
      type.layout.kind == (type.shape.rank() == 4 ? Layout::Kind::channels_last : Layout::Kind::row_major);
  if (!rows_of_channels) return to_string(type) + " does not lie channels last";
  return std::nullopt;
}

// Accepts when the given inputs, and output 0 where it has their shape, are rows of channels.
KernelMatch match_rows(const KernelQuery& query, std::initializer_list<std::size_t> inputs, Bytes workspace) {
  for (const std::size_t i : inputs) {
    if (auto reason = objection_to(query.inputs[i])) return Refuse{*reason};
  }
  return Accept{.workspace = workspace};
}

// Workspace: `arrays` rows of floats, one float per channel, then the threads' double sums.
class Scratch {
 public:
  Scratch(std::byte* begin, std::int64_t channels, int arrays, int threads)
      : cutter_(begin),
        channels_(channels),
        floats_(reinterpret_cast<float*>(cutter_.cut(Bytes(4 * stride() * arrays)))),
        sums_(reinterpret_cast<double*>(cutter_.cut(Bytes(16 * stride() * threads)))) {}

  Bytes size() const { return cutter_.used(); }
  float* array(int i) const { return floats_ + i * stride(); }
  double* sum(int thread, int which) const { return sums_ + (2 * thread + which) * stride(); }

 private:
  // Each thread writes its sums to separate cache lines.
  std::int64_t stride() const { return (channels_ + 15) / 16 * 16; }

  WorkspaceCutter cutter_;
  std::int64_t channels_;
  float* floats_;
  double* sums_;
};

// Sums over rows [0, rows): `add(range, sum0, sum1)` for each thread's rows, then over the threads into the first thread's sums.
template <typename Add>
void sum_over_rows(const Scratch& scratch, std::int64_t rows, std::int64_t channels, int threads, const Add& add) {
  for_each_part(rows, threads, 1, [&](int part, Range range) {
    std::fill_n(scratch.sum(part, 0), channels, 0.0);
    std::fill_n(scratch.sum(part, 1), channels, 0.0);
    add(range, scratch.sum(part, 0), scratch.sum(part, 1));
  });
  for (int part = 1; part < threads; ++part) {
    for (int which = 0; which < 2; ++which) {
      for (std::int64_t c = 0; c < channels; ++c) scratch.sum(0, which)[c] += scratch.sum(part, which)[c];
    }
  }
}

struct Common {
  BatchNormGeometry geometry;
  int threads;
  std::int64_t row(std::int64_t example) const { return example * geometry.pixels; }
  std::int64_t offset(std::int64_t example) const { return row(example) * geometry.channels; }
};

Common common(const KernelArguments& arguments, std::size_t x) {
  return {.geometry = BatchNormGeometry::from(arguments.inputs[x].type.shape, arguments.attributes),
          .threads = arguments.threads};
}

const Scalars* scalars_at(const Operand& operand) { return reinterpret_cast<const Scalars*>(operand.data); }

Bytes workspace_of(const Type& x, int arrays, int threads) { return Scratch(nullptr, x.shape[1], arrays, threads).size(); }

// ---- statistics(x, scalars) -> mean, variance

KernelMatch match_statistics(const KernelQuery& query) {
  return match_rows(query, {0}, workspace_of(query.inputs[0], 1, query.threads));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_statistics(const KernelArguments& arguments) {
  const Common with = common(arguments, 0);
  const Scratch scratch(arguments.workspace.data(), with.geometry.channels, 1, arguments.threads);
  return make_bound([with, scratch, x = elements<T>(arguments.inputs[0]), scalars = scalars_at(arguments.inputs[1]),
                     mean = floats(arguments.outputs[0]), variance = floats(arguments.outputs[1])] {
    const BatchNormGeometry& g = with.geometry;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t rows = g.valid_in_group(group, scalars->valid_examples) * g.pixels;
      float* group_mean = mean + group * g.channels;
      float* group_variance = variance + group * g.channels;
      if (rows == 0) {
        std::fill_n(group_mean, g.channels, 0.0F);
        std::fill_n(group_variance, g.channels, 1.0F);
        continue;
      }
      const T* values = x + with.offset(group * g.group_size);
      // The first row is close enough to the mean to avoid cancellation in the squares.
      float* offset = scratch.array(0);
      simd::element_loops<T>().widen(values, offset, g.channels);
      sum_over_rows(scratch, rows, g.channels, with.threads, [&](Range part, double* sum, double* squares) {
        simd::row_loops<T>().moments(values + part.begin * g.channels, part.size(), g.channels, offset, sum, squares);
      });
      const auto count = static_cast<double>(rows);
      for (std::int64_t c = 0; c < g.channels; ++c) {
        const double difference = scratch.sum(0, 0)[c] / count;
        group_mean[c] = static_cast<float>(offset[c] + difference);
        group_variance[c] = static_cast<float>(std::max(0.0, scratch.sum(0, 1)[c] / count - difference * difference));
      }
    }
  });
}

// The statistics and parameters of a node, and how they normalize one group.
struct Normalization {
  const float *mean, *variance, *weight, *bias;
  bool fixed;
  double epsilon;

  // The index of a group's first channel in the statistics.
  std::int64_t first(std::int64_t group, std::int64_t channels) const { return fixed ? 0 : group * channels; }
  double inverse_deviation(std::int64_t at) const { return 1.0 / std::sqrt(static_cast<double>(variance[at]) + epsilon); }
  // `scale` is filled; without weight and bias only the mean may be used.
  simd::Normalizer of_group(std::int64_t group, std::int64_t channels, bool relu, float* scale) const {
    const std::int64_t begin = first(group, channels);
    for (std::int64_t c = 0; c < channels && weight != nullptr; ++c) {
      scale[c] = static_cast<float>(weight[c] * inverse_deviation(begin + c));
    }
    return {.mean = mean + begin, .scale = scale, .bias = bias, .relu = relu};
  }
};

// ---- apply(x, mean, variance, weight, bias, scalars) -> y

KernelMatch match_apply(const KernelQuery& query) { return match_rows(query, {0}, workspace_of(query.inputs[0], 1, 0)); }

template <typename T>
std::unique_ptr<BoundKernel> bind_apply(const KernelArguments& arguments) {
  const Common with = common(arguments, 0);
  const Scratch scratch(arguments.workspace.data(), with.geometry.channels, 1, 0);
  const Normalization normalization{.mean = floats(arguments.inputs[1]),
                                    .variance = floats(arguments.inputs[2]),
                                    .weight = floats(arguments.inputs[3]),
                                    .bias = floats(arguments.inputs[4]),
                                    .fixed = arguments.inputs[1].type.shape.rank() == 1,
                                    .epsilon = arguments.attributes.real("epsilon")};
  return make_bound([with, scratch, normalization, x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]),
                     relu = ops::batch_norm_with_relu(arguments.attributes)] {
    const BatchNormGeometry& g = with.geometry;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const simd::Normalizer normalizer = normalization.of_group(group, g.channels, relu, scratch.array(0));
      const std::int64_t begin = with.offset(group * g.group_size);
      const std::int64_t rows = with.row(std::min(g.batch, (group + 1) * g.group_size)) - with.row(group * g.group_size);
      for_each_part(rows, with.threads, 1, [&](int, Range part) {
        const std::int64_t at = begin + part.begin * g.channels;
        simd::row_loops<T>().normalize(x + at, y + at, part.size(), g.channels, normalizer);
      });
    }
  });
}

// ---- grad_reduce(dy, x, mean, variance, [weight, bias]) -> sums of dy * normalized x, and of dy

KernelMatch match_grad_reduce(const KernelQuery& query) {
  return match_rows(query, {0, 1}, workspace_of(query.inputs[1], 1, query.threads));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_reduce(const KernelArguments& arguments) {
  const Common with = common(arguments, 1);
  const Scratch scratch(arguments.workspace.data(), with.geometry.channels, 1, arguments.threads);
  const bool relu = ops::batch_norm_with_relu(arguments.attributes);
  const Normalization normalization{.mean = floats(arguments.inputs[2]),
                                    .variance = floats(arguments.inputs[3]),
                                    .weight = relu ? floats(arguments.inputs[4]) : nullptr,
                                    .bias = relu ? floats(arguments.inputs[5]) : nullptr,
                                    .fixed = arguments.inputs[2].type.shape.rank() == 1,
                                    .epsilon = arguments.attributes.real("epsilon")};
  return make_bound([with, scratch, normalization, relu, dy = elements<T>(arguments.inputs[0]),
                     x = elements<T>(arguments.inputs[1]), weight_sums = floats(arguments.outputs[0]),
                     bias_sums = floats(arguments.outputs[1])] {
    const BatchNormGeometry& g = with.geometry;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const simd::Normalizer normalizer = normalization.of_group(group, g.channels, relu, scratch.array(0));
      const std::int64_t statistics = normalization.first(group, g.channels);
      const std::int64_t begin = with.offset(group * g.group_size);
      const std::int64_t rows = with.row(std::min(g.batch, (group + 1) * g.group_size)) - with.row(group * g.group_size);
      sum_over_rows(scratch, rows, g.channels, with.threads, [&](Range part, double* with_x, double* plain) {
        const std::int64_t at = begin + part.begin * g.channels;
        simd::row_loops<T>().gradient_sums(dy + at, x + at, part.size(), g.channels, normalizer, with_x, plain);
      });
      for (std::int64_t c = 0; c < g.channels; ++c) {
        weight_sums[group * g.channels + c] =
            static_cast<float>(scratch.sum(0, 0)[c] * normalization.inverse_deviation(statistics + c));
        bias_sums[group * g.channels + c] = static_cast<float>(scratch.sum(0, 1)[c]);
      }
    }
  });
}

// ---- grad_input(dy, x, mean, variance, weight, weight_sums, bias_sums, scalars, [bias], [sum]) -> dx
// dx = weight / deviation * (dy - bias_sums / n - normalized x * weight_sums / n), written as of_dy dy + of_x (x - mean) +
// constant.

KernelMatch match_grad_input(const KernelQuery& query) {
  if (accumulates(query.attributes)) {
    if (auto reason = objection_to(query.inputs.back())) return Refuse{*reason};
  }
  return match_rows(query, {0, 1}, workspace_of(query.inputs[1], 4, 0));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const Common with = common(arguments, 1);
  const Scratch scratch(arguments.workspace.data(), with.geometry.channels, 4, 0);
  const bool relu = ops::batch_norm_with_relu(arguments.attributes);
  const Normalization normalization{.mean = floats(arguments.inputs[2]),
                                    .variance = floats(arguments.inputs[3]),
                                    .weight = floats(arguments.inputs[4]),
                                    .bias = relu ? floats(arguments.inputs[8]) : nullptr,
                                    .fixed = false,
                                    .epsilon = arguments.attributes.real("epsilon")};
  const T* sum = accumulates(arguments.attributes) ? elements<T>(arguments.inputs.back()) : nullptr;
  return make_bound([with, scratch, normalization, relu, sum, dy = elements<T>(arguments.inputs[0]),
                     x = elements<T>(arguments.inputs[1]), weight_sums = floats(arguments.inputs[5]),
                     bias_sums = floats(arguments.inputs[6]), scalars = scalars_at(arguments.inputs[7]),
                     dx = elements<T>(arguments.outputs[0])] {
    const BatchNormGeometry& g = with.geometry;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      float* of_dy = scratch.array(0);
      float* of_x = scratch.array(1);
      float* constant = scratch.array(2);
      const std::int64_t valid = g.valid_in_group(group, scalars->valid_examples);
      const auto count = static_cast<double>(valid * g.pixels);
      for (std::int64_t c = 0; c < g.channels && valid > 0; ++c) {
        const std::int64_t at = group * g.channels + c;
        const double inverse = normalization.inverse_deviation(at);
        const double factor = normalization.weight[c] * inverse;
        const double slope = -factor * inverse * weight_sums[at] / count;
        of_dy[c] = static_cast<float>(factor);
        of_x[c] = static_cast<float>(slope);
        constant[c] = static_cast<float>(-factor * bias_sums[at] / count);
      }
      const simd::NormGradient gradient{.of_dy = of_dy,
                                        .of_x = of_x,
                                        .constant = constant,
                                        .normalizer = normalization.of_group(group, g.channels, relu, scratch.array(3))};
      const std::int64_t begin = with.offset(group * g.group_size);
      for_each_part(valid * g.pixels, with.threads, 1, [&](int, Range part) {
        const std::int64_t at = begin + part.begin * g.channels;
        simd::row_loops<T>().norm_gradient(dy + at, x + at, sum == nullptr ? nullptr : sum + at, dx + at, part.size(), g.channels,
                                           gradient);
      });
      // Padding is not in the statistics, and its gradient is 0.
      const std::int64_t padding = with.offset(group * g.group_size + valid);
      const std::int64_t end = with.offset(std::min(g.batch, (group + 1) * g.group_size));
      for (std::int64_t i = padding; i < end; ++i) dx[i] = sum == nullptr ? T{} : sum[i];
    }
  });
}

using Bind = std::unique_ptr<BoundKernel> (*)(const KernelArguments&);

// By the type of dy, x and dx; parameters, statistics and sums are floats.
template <Bind F32, Bind Bf16, Bind F16>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const DType dtype = arguments.inputs[0].type.dtype;
  return dtype == DType::f32 ? F32(arguments) : dtype == DType::bf16 ? Bf16(arguments) : F16(arguments);
}

}  // namespace

constinit const KernelDef simd_batch_norm_statistics{
    .name = "simd_batch_norm_statistics",
    .op = "batch_norm_statistics",
    .match = match_statistics,
    .bind = bind<bind_statistics<float>, bind_statistics<Bfloat16>, bind_statistics<Half>>};
constinit const KernelDef simd_batch_norm_apply{.name = "simd_batch_norm_apply",
                                                .op = "batch_norm_apply",
                                                .match = match_apply,
                                                .bind = bind<bind_apply<float>, bind_apply<Bfloat16>, bind_apply<Half>>};
constinit const KernelDef simd_batch_norm_grad_reduce{
    .name = "simd_batch_norm_grad_reduce",
    .op = "batch_norm_grad_reduce",
    .match = match_grad_reduce,
    .bind = bind<bind_grad_reduce<float>, bind_grad_reduce<Bfloat16>, bind_grad_reduce<Half>>};
constinit const KernelDef simd_batch_norm_grad_input{
    .name = "simd_batch_norm_grad_input",
    .op = "batch_norm_grad_input",
    .match = match_grad_input,
    .bind = bind<bind_grad_input<float>, bind_grad_input<Bfloat16>, bind_grad_input<Half>>};

}  // namespace snug::backends::cpu
