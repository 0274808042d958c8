#include "conformance/gradient_check.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using frontend::GraphBuilder;

GradientCase batch_norm(const std::string& name, const Shape& input, const BatchNormOptions& options, std::int64_t valid = 0) {
  return {
      .name = name,
      .build = [input, options](GraphBuilder& b) { weighted_sum_loss(b, b.batch_norm("bn", operand(b, "x", input), options)); },
      .batch = input[0],
      .valid = valid};
}

}  // namespace

std::vector<GradientCase> normalization_cases() {
  return {
      batch_norm("batch_norm", {4, 3, 2, 3}, {}),
      batch_norm("batch_norm_of_rows", {6, 5}, {}),
      batch_norm("batch_norm_in_groups", {7, 2, 2, 2}, {.group_size = 3}),
      batch_norm("batch_norm_partial_batch", {5, 3, 2, 2}, {}, 3),
      batch_norm("batch_norm_groups_partial_batch", {6, 2, 2, 2}, {.group_size = 2}, 3),
      {.name = "batch_norm_with_fixed_statistics",
       .build =
           [](GraphBuilder& b) {
             const ValueId x = operand(b, "x", {3, 2, 2, 2});
             const ValueId mean = b.statistic("mean", {.dtype = DType::f32, .shape = {2}}, {});
             const ValueId variance = b.statistic("variance", {.dtype = DType::f32, .shape = {2}}, {});
             const ValueId weight = operand(b, "weight", {2});
             const ValueId bias = operand(b, "bias", {2});
             weighted_sum_loss(b, b.emit("bn", ops::batch_norm_apply, {x, mean, variance, weight, bias, b.scalars()},
                                         {{"group_size", std::int64_t{3}}, {"epsilon", 1e-5}})
                                      .front());
           }},
      {.name = "batch_norm_relu_of_partial_groups",
       .build =
           [](GraphBuilder& b) {
             const ValueId x = operand(b, "x", {5, 3, 2, 2});
             weighted_sum_loss(b, b.add("add", b.relu("relu", b.batch_norm("bn", x, {.group_size = 2})), x));
           },
       .batch = 5,
       .valid = 3},
      {.name = "group_norm",
       .build =
           [](GraphBuilder& b) {
             weighted_sum_loss(b, b.group_norm("gn", operand(b, "x", {2, 6, 3, 2}), 3));
           },
       .batch = 2},
      {.name = "residual_block",
       .build =
           [](GraphBuilder& b) {
             const ValueId x = b.conv2d("stem", operand(b, "x", {3, 2, 4, 4}), {.out_channels = 4, .padding = 1});
             ValueId y = b.relu("relu1", b.batch_norm("bn1", x));
             y = b.conv2d("conv1", y, {.out_channels = 6, .stride = 2, .padding = 1});
             y = b.relu("relu2", b.batch_norm("bn2", y));
             y = b.conv2d("conv2", y, {.out_channels = 6, .padding = 1});
             y = b.add("add", y, b.shortcut("shortcut", x, 6, 2));
             b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", y), 4));
           }},
      {.name = "pooled_network_with_dropout",
       .build =
           [](GraphBuilder& b) {
             ValueId x = b.conv2d("conv", operand(b, "x", {3, 2, 6, 6}), {.out_channels = 4, .padding = 1, .bias = true});
             x = b.max_pool("pool", b.relu("relu1", x));
             x = b.dropout("dropout", b.relu("relu2", b.linear("fc1", b.flatten("flatten", x), 6)), 0.3);
             b.softmax_cross_entropy(b.linear("fc2", x, 4), 0.1);
           }},
  };
}

}  // namespace snug::conformance
