#include "ops/batch_norm.h"

#include <algorithm>

#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/common.h"
#include "ops/ops.h"

// Batch norm is three ops, so that statistics and normalization can be recomputed while the running statistics are updated once:
//   batch_norm_statistics(x, scalars) {group_size} -> mean, variance [groups,C]      over the valid examples; variance is biased
//   batch_norm_apply(x, mean, variance, weight, bias, scalars) {group_size, epsilon} -> y
//     mean and variance [groups,C], or fixed ones [C]; the scalar block tells the gradient how many examples are valid
//   batch_norm_running(mean, variance, running_mean, running_var, scalars) {group_size, momentum, batch, pixels}
//     -> running_mean, running_var
// All take rows_per_example, where the leading dimension of x has several rows for each example.
// With the attribute relu=1 `apply` gives max(y, 0), and its gradient ops recompute from x where y was positive: a ReLU then
// costs no pass over memory and keeps nothing. For that they take the bias as an additional input.
// The gradient of `apply` includes the one through the statistics when they are the batch's, so `statistics` has none of its
// own.

namespace snug::ops {

BatchNormGeometry BatchNormGeometry::from(const Shape& x, const Attributes& attributes) {
  if (x.rank() != 4 && x.rank() != 2) throw_user_error("the input is {}; it must be [N,C,H,W] or [N,C]", to_string(x));
  const std::int64_t group_size = attributes.integer("group_size");
  if (group_size < 1) throw_user_error("a statistics group of {} examples is not possible; use at least 1", group_size);
  require_example_rows({.dtype = DType::f32, .shape = x}, attributes);
  return {.batch = x[0],
          .channels = x[1],
          .pixels = x.rank() == 4 ? x[2] * x[3] : 1,
          .group_size = group_size,
          .groups = x[0] / group_size + (x[0] % group_size == 0 ? 0 : 1),
          .rows_per_example = snug::rows_per_example(attributes)};
}

std::int64_t BatchNormGeometry::valid_rows(std::int64_t valid_examples) const {
  return std::min(valid_examples * rows_per_example, batch);
}

std::int64_t BatchNormGeometry::valid_in_group(std::int64_t g, std::int64_t valid_examples) const {
  const std::int64_t begin = g * group_size;
  return std::clamp<std::int64_t>(valid_rows(valid_examples) - begin, 0, group_size);
}

bool batch_norm_with_relu(const Attributes& attributes) { return attributes.integer_or("relu", 0) != 0; }

namespace {

Shape rows(const BatchNormGeometry& g) { return {g.groups, g.channels}; }

bool fixed_statistics(const Type& mean) { return mean.shape.rank() == 1; }

void require_statistics(const Type& type, const BatchNormGeometry& g, std::string_view what) {
  require_shape(type, fixed_statistics(type) ? Shape{g.channels} : rows(g), what);
}

std::vector<Type> infer_statistics(const OpCall& call) {
  require_inputs(call, 2);
  require_scalars(call.inputs[1]);
  const auto g = BatchNormGeometry::from(call.inputs[0].shape, call.attributes);
  const Type row{.dtype = statistics_dtype(call.inputs[0].dtype), .shape = rows(g)};
  return {row, row};
}

std::vector<Type> infer_apply(const OpCall& call) {
  require_inputs(call, 6);
  require_epsilon(call);
  const auto g = BatchNormGeometry::from(call.inputs[0].shape, call.attributes);
  require_statistics(call.inputs[1], g, "the mean");
  require_shape(call.inputs[2], call.inputs[1].shape, "the variance");
  require_shape(call.inputs[3], {g.channels}, "the weight");
  require_shape(call.inputs[4], {g.channels}, "the bias");
  require_scalars(call.inputs[5]);
  return {call.inputs[0]};
}

std::vector<Type> infer_running(const OpCall& call) {
  require_inputs(call, 5);
  const Type& mean = call.inputs[0];
  require_rank(mean, 2, "the mean");
  const double momentum = call.attributes.real("momentum");
  if (!(momentum >= 0 && momentum <= 1)) throw_user_error("momentum {} is not in [0, 1]", momentum);
  const Shape x{call.attributes.integer("batch"), mean.shape[1], call.attributes.integer("pixels"), 1};
  require_shape(mean, rows(BatchNormGeometry::from(x, call.attributes)), "the mean");
  require_shape(call.inputs[1], mean.shape, "the variance");
  require_shape(call.inputs[2], {mean.shape[1]}, "the running mean");
  require_shape(call.inputs[3], {mean.shape[1]}, "the running variance");
  require_scalars(call.inputs[4]);
  return {call.inputs[2], call.inputs[3]};
}

// batch_norm_grad_reduce(dy, x, mean, variance) {group_size, epsilon} -> sums [groups,C]: of dy * normalized x, and of dy
// With relu=1: (dy, x, mean, variance, weight, bias).
std::vector<Type> infer_grad_reduce(const OpCall& call) {
  require_inputs(call, batch_norm_with_relu(call.attributes) ? 6 : 4);
  require_epsilon(call);
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  const auto g = BatchNormGeometry::from(call.inputs[1].shape, call.attributes);
  require_statistics(call.inputs[2], g, "the mean");
  require_shape(call.inputs[3], call.inputs[2].shape, "the variance");
  for (std::size_t i = 4; i < call.inputs.size(); ++i)
    require_shape(call.inputs[i], {g.channels}, i == 4 ? "the weight" : "the bias");
  const Type row{.dtype = call.inputs[2].dtype, .shape = rows(g)};
  return {row, row};
}

// batch_norm_grad_input(dy, x, mean, variance, weight, weight_sums, bias_sums, scalars) {group_size, epsilon} -> dx
// With relu=1 the bias follows.
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, batch_norm_with_relu(call.attributes) ? 9 : 8);
  require_epsilon(call);
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  const auto g = BatchNormGeometry::from(call.inputs[1].shape, call.attributes);
  require_shape(call.inputs[2], rows(g), "the mean");
  require_shape(call.inputs[3], rows(g), "the variance");
  require_shape(call.inputs[4], {g.channels}, "the weight");
  require_shape(call.inputs[5], rows(g), "the sums for the weight");
  require_shape(call.inputs[6], rows(g), "the sums for the bias");
  require_scalars(call.inputs[7]);
  if (call.inputs.size() == 9) require_shape(call.inputs[8], {g.channels}, "the bias");
  return {call.inputs[0]};
}

// batch_norm_grad_fixed(dy, variance, weight) {group_size, epsilon} -> dx, when the statistics do not depend on x
std::vector<Type> infer_grad_fixed(const OpCall& call) {
  require_inputs(call, 3);
  require_epsilon(call);
  const auto g = BatchNormGeometry::from(call.inputs[0].shape, call.attributes);
  require_shape(call.inputs[1], {g.channels}, "the variance");
  require_shape(call.inputs[2], {g.channels}, "the weight");
  return {call.inputs[0]};
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  const Attributes& attributes = context.attributes();
  const bool fixed = fixed_statistics(context.input_type(1));
  const bool with_relu = batch_norm_with_relu(attributes);
  SNUG_CHECK(!(fixed && with_relu), "a ReLU is fused only with statistics of the batch");
  std::vector<ValueId> sums;
  if (context.wants(3) || context.wants(4) || (context.wants(0) && !fixed)) {
    std::vector<ValueId> inputs{dy, context.input(0), context.input(1), context.input(2)};
    if (with_relu) inputs.insert(inputs.end(), {context.input(3), context.input(4)});
    sums = context.emit_all(batch_norm_grad_reduce, std::move(inputs), attributes);
  }
  if (context.wants(3)) context.set_gradient(3, context.emit(sum_to_channels, {sums[0]}));
  if (context.wants(4)) context.set_gradient(4, context.emit(sum_to_channels, {sums[1]}));
  if (!context.wants(0)) return;
  if (fixed) {
    context.set_gradient(0, context.emit(batch_norm_grad_fixed, {dy, context.input(2), context.input(3)}, attributes));
    return;
  }
  std::vector<ValueId> inputs{dy,      context.input(0), context.input(1), context.input(2), context.input(3),
                              sums[0], sums[1],          context.input(5)};
  if (with_relu) inputs.push_back(context.input(4));
  context.set_gradient(0, context.emit(batch_norm_grad_input, std::move(inputs), attributes));
}

// A fused ReLU still counts as one operation per element, forward and backward.
template <std::int64_t PerElement>
std::int64_t flops_with_relu(const NodeTypes& types, const Attributes& attributes) {
  return (PerElement + (batch_norm_with_relu(attributes) ? 1 : 0)) * types.outputs[0].elements();
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b01111, .build = build_gradient}}};
constexpr std::array<std::string_view, 2> kStatisticsOutputs{"mean", "variance"};
constexpr std::array<std::string_view, 2> kReduceOutputs{"weight_sums", "bias_sums"};
constexpr std::array<InPlacePromise, 2> kRunningInPlace{{{0, 2}, {1, 3}}};

// With fixed statistics (rank 1) backward does not read x, and recomputing the sign would make it do so.
bool has_statistics_of_groups(const NodeTypes& types) { return types.inputs[1].shape.rank() == 2; }

constexpr std::array<Absorption, 1> kAbsorbs{{{.op = &relu, .attribute = "relu", .allows = has_statistics_of_groups}}};

}  // namespace

constinit const OpDef batch_norm_statistics{.name = "batch_norm_statistics",
                                            .infer = infer_statistics,
                                            .flops = flops_per_input_element<5>,
                                            .outputs = kStatisticsOutputs,
                                            .cheap_to_recompute = true,
                                            .depends_on_batch = true};

constinit const OpDef batch_norm_apply{.name = "batch_norm_apply",
                                       .infer = infer_apply,
                                       .flops = flops_with_relu<2>,
                                       .gradients = kRecipes,
                                       .in_place = kFirstInPlace,
                                       .cheap_to_recompute = true,
                                       .normalizes = true,
                                       .wide_inputs = 0b11110,
                                       .absorbs = kAbsorbs};

constinit const OpDef batch_norm_running{.name = "batch_norm_running",
                                         .infer = infer_running,
                                         .in_place = kRunningInPlace,
                                         .may_recompute = false,
                                         .wide_inputs = 0b1111};

constinit const OpDef batch_norm_grad_reduce{
    .name = "batch_norm_grad_reduce", .infer = infer_grad_reduce, .flops = flops_per_input_element<5>, .outputs = kReduceOutputs};

constinit const OpDef batch_norm_grad_input{.name = "batch_norm_grad_input",
                                            .infer = infer_grad_input,
                                            .flops = flops_with_relu<6>,
                                            .in_place = kBothInPlace,
                                            .may_accumulate = true};

constinit const OpDef batch_norm_grad_fixed{.name = "batch_norm_grad_fixed",
                                            .infer = infer_grad_fixed,
                                            .flops = flops_per_output_element<1>,
                                            .in_place = kFirstInPlace,
                                            .may_accumulate = true};

}  // namespace snug::ops
