#include "conformance/gradient_check.h"
#include "ops/ops.h"
#include "passes/model/sparsify.h"

namespace snug::conformance {

namespace {

using frontend::GraphBuilder;

GradientCase convolution(const std::string& name, const Shape& input, const Conv2dOptions& options) {
  return {.name = name,
          .build = [input, options](GraphBuilder& b) { weighted_sum_loss(b, b.conv2d("conv", operand(b, "x", input), options)); },
          .batch = input[0]};
}

GradientCase unary(const std::string& name, const Shape& input, const std::function<ValueId(GraphBuilder&, ValueId)>& layer) {
  return {.name = name,
          .build = [input, layer](GraphBuilder& b) { weighted_sum_loss(b, layer(b, operand(b, "x", input))); },
          .batch = input[0]};
}

ValueId gelu(GraphBuilder& b, ValueId x, std::int64_t tanh) { return b.emit("gelu", ops::gelu, {x}, {{"tanh", tanh}}).front(); }

Program half_sparse(Program graph) { return sparsify(std::move(graph), 0.5); }

// The first convolution stays dense; the others share one store, whose gradient all of them add to.
GradientCase sparse_convolutions() {
  return {.name = "sparse_conv2d",
          .build =
              [](GraphBuilder& b) {
                ValueId x = b.conv2d("stem", operand(b, "x", {2, 2, 7, 6}), {.out_channels = 3, .padding = 1});
                x = b.conv2d("strided", x, {.out_channels = 4, .stride = 2, .padding = 1, .bias = true});
                const ValueId y = b.conv2d("dilated", x, {.out_channels = 4, .padding = 2, .dilation = 2});
                weighted_sum_loss(b, b.add("sum", y, b.conv2d("one", x, {.out_channels = 4, .kernel = 1})));
              },
          .batch = 2,
          .step = 1e-3,  // the loss is linear in every number, and large
          .rewrite = half_sparse};
}

}  // namespace

std::vector<GradientCase> layer_cases() {
  return {
      convolution("conv2d_3x3", {2, 3, 5, 4}, {.out_channels = 4, .padding = 1}),
      convolution("conv2d_strided", {2, 2, 7, 6}, {.out_channels = 3, .stride = 2, .padding = 1}),
      convolution("conv2d_1x1_strided", {1, 4, 5, 5}, {.out_channels = 2, .kernel = 1, .stride = 2}),
      convolution("conv2d_dilated", {1, 2, 8, 7}, {.out_channels = 2, .padding = 2, .dilation = 2}),
      convolution("conv2d_grouped_bias", {2, 4, 4, 4}, {.out_channels = 6, .padding = 1, .groups = 2, .bias = true}),
      convolution("conv2d_depthwise", {1, 3, 5, 5}, {.out_channels = 3, .padding = 1, .groups = 3}),
      sparse_convolutions(),
      unary("relu", {2, 3, 3, 3}, [](GraphBuilder& b, ValueId x) { return b.relu("relu", x); }),
      unary("relu_of_odd_length", {1, 13}, [](GraphBuilder& b, ValueId x) { return b.relu("relu", x); }),
      unary("gelu", {2, 3, 3, 3}, [](GraphBuilder& b, ValueId x) { return gelu(b, x, 0); }),
      unary("gelu_by_tanh", {1, 13}, [](GraphBuilder& b, ValueId x) { return gelu(b, x, 1); }),
      {.name = "add",
       .build =
           [](GraphBuilder& b) {
             weighted_sum_loss(b, b.add("add", operand(b, "x", {3, 4}), operand(b, "y", {3, 4})));
           }},
      {.name = "add_of_a_value_to_itself",
       .build =
           [](GraphBuilder& b) {
             const ValueId x = b.relu("relu", operand(b, "x", {3, 5}));
             weighted_sum_loss(b, b.add("add", x, x));
           }},
      {.name = "value_read_three_times",
       .build =
           [](GraphBuilder& b) {
             const ValueId x = b.conv2d("stem", operand(b, "x", {2, 2, 4, 4}), {.out_channels = 3, .padding = 1});
             const ValueId y = b.conv2d("conv1", x, {.out_channels = 3, .padding = 1});
             const ValueId z = b.conv2d("conv2", x, {.out_channels = 3, .padding = 1});
             weighted_sum_loss(b, b.add("sum2", b.add("sum1", y, z), b.relu("relu", x)));
           },
       .batch = 2},
      {.name = "parameter_used_twice",
       .build =
           [](GraphBuilder& b) {
             const ValueId w = operand(b, "w", {4, 4});
             const ValueId x = b.emit("fc1", ops::linear, {operand(b, "x", {3, 4}), w}).front();
             weighted_sum_loss(b, b.emit("fc2", ops::linear, {x, w}).front());
           }},
      unary("max_pool", {2, 3, 6, 4}, [](GraphBuilder& b, ValueId x) { return b.max_pool("pool", x); }),
      unary("max_pool_overlapping", {1, 3, 7, 7},
            [](GraphBuilder& b, ValueId x) { return b.max_pool("pool", x, {.kernel = 3, .stride = 2, .padding = 1}); }),
      unary("max_pool_of_large_windows", {1, 2, 10, 10},
            [](GraphBuilder& b, ValueId x) { return b.max_pool("pool", x, {.kernel = 5, .stride = 5}); }),
      unary("avg_pool", {2, 3, 5, 5},
            [](GraphBuilder& b, ValueId x) { return b.avg_pool("pool", x, {.kernel = 3, .stride = 2, .padding = 1}); }),
      unary("global_avg_pool", {2, 5, 3, 4}, [](GraphBuilder& b, ValueId x) { return b.global_avg_pool("pool", x); }),
      unary("shortcut", {2, 3, 5, 4}, [](GraphBuilder& b, ValueId x) { return b.shortcut("shortcut", x, 5, 2); }),
      unary("linear", {3, 7}, [](GraphBuilder& b, ValueId x) { return b.linear("fc", x, 5); }),
      unary("linear_without_bias", {3, 4}, [](GraphBuilder& b, ValueId x) { return b.linear("fc", x, 2, {.bias = false}); }),
      unary("dropout", {3, 17}, [](GraphBuilder& b, ValueId x) { return b.dropout("dropout", x, 0.4); }),
      unary("reshape", {2, 12},
            [](GraphBuilder& b, ValueId x) {
              return b.reshape("reshape", x, {4, 6});
            }),
      unary("relayout_and_reshape", {2, 3, 2, 4}, [](GraphBuilder& b, ValueId x) { return b.flatten("flatten", x); }),
      {.name = "softmax_cross_entropy",
       .build =
           [](GraphBuilder& b) {
             b.softmax_cross_entropy(operand(b, "x", {5, 4}));
           },
       .batch = 5},
      {.name = "softmax_cross_entropy_of_weighted_rows",
       .build =
           [](GraphBuilder& b) {
             const ValueId labels = b.input("labels", {.dtype = DType::i32, .shape = {10}});
             const ValueId weights = b.input("weights", {.dtype = DType::f32, .shape = {10}});
             b.softmax_cross_entropy(operand(b, "x", {10, 4}), labels, weights, 0.1);
           },
       .batch = 5,
       .valid = 4},
      {.name = "softmax_cross_entropy_smoothed_partial",
       .build =
           [](GraphBuilder& b) {
             b.softmax_cross_entropy(operand(b, "x", {5, 6}), 0.1);
           },
       .batch = 5,
       .valid = 3},
  };
}

}  // namespace snug::conformance
