#include "ops/conv2d.h"

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// conv2d(x [N,C,H,W], w [O,C/groups,kh,kw], bias [O]?) {stride, padding, dilation: [h,w]; groups} -> [N,O,OH,OW]

namespace snug::ops {

std::int64_t window_output(std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation) {
  // Bounds far beyond any real layer keep the arithmetic below from overflowing on a hostile program.
  constexpr std::int64_t kMost = 1 << 20;
  if (kernel < 1 || kernel > kMost || stride < 1 || stride > kMost || dilation < 1 || dilation > kMost || padding < 0 ||
      padding > kMost) {
    throw_user_error(
        "kernel {}, stride {}, padding {}, dilation {}: kernel, stride and dilation must be at least 1, padding at least 0",
        kernel, stride, padding, dilation);
  }
  const std::int64_t extent = dilation * (kernel - 1) + 1;
  if (input + 2 * padding < extent)
    throw_user_error("a window of {} does not fit an input of {} with padding {}", extent, input, padding);
  return (input + 2 * padding - extent) / stride + 1;
}

namespace {

struct Pair {
  std::int64_t height, width;
};

Pair pair_of(const Attributes& attributes, std::string_view name) {
  const auto& values = attributes.integers(name);
  if (values.size() != 2) throw_user_error("attribute '{}' has {} numbers; it takes two (height, width)", name, values.size());
  return {values[0], values[1]};
}

}  // namespace

Conv2dGeometry Conv2dGeometry::from(const Shape& input, const Shape& weight, const Attributes& attributes) {
  if (input.rank() != 4) throw_user_error("the input is {}; it must have 4 dimensions (N,C,H,W)", to_string(input));
  if (weight.rank() != 4) throw_user_error("the weight is {}; it must have 4 dimensions (O,I,H,W)", to_string(weight));
  const Pair stride = pair_of(attributes, "stride");
  const Pair padding = pair_of(attributes, "padding");
  const Pair dilation = pair_of(attributes, "dilation");
  const std::int64_t groups = attributes.integer("groups");
  if (groups < 1 || input[1] % groups != 0 || weight[0] % groups != 0 || weight[1] != input[1] / groups) {
    throw_user_error("input {} with {} groups does not go with weight {}", to_string(input), groups, to_string(weight));
  }
  return {.batch = input[0],
          .in_channels = input[1],
          .in_height = input[2],
          .in_width = input[3],
          .out_channels = weight[0],
          .out_height = window_output(input[2], weight[2], stride.height, padding.height, dilation.height),
          .out_width = window_output(input[3], weight[3], stride.width, padding.width, dilation.width),
          .kernel_height = weight[2],
          .kernel_width = weight[3],
          .stride_height = stride.height,
          .stride_width = stride.width,
          .padding_height = padding.height,
          .padding_width = padding.width,
          .dilation_height = dilation.height,
          .dilation_width = dilation.width,
          .groups = groups};
}

std::int64_t Conv2dGeometry::multiply_adds() const {
  return count_operations(batch * out_height * out_width * out_channels, (in_channels / groups) * kernel_height * kernel_width);
}

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2, 3);
  const Type& x = call.inputs[0];
  const auto g = Conv2dGeometry::from(x.shape, call.inputs[1].shape, call.attributes);
  if (call.inputs.size() == 3) require_shape(call.inputs[2], {g.out_channels}, "the bias");
  return {{.dtype = x.dtype, .shape = {g.batch, g.out_channels, g.out_height, g.out_width}, .layout = x.layout}};
}

std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return 2 * Conv2dGeometry::from(types.inputs[0].shape, types.inputs[1].shape, attributes).multiply_adds();
}

// conv2d_grad_input(dy, w) {..., input_shape, channels_last?} -> dx
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 2);
  const Type& dy = call.inputs[0];
  const Type dx = type_from_input_shape(dy, call.attributes, dy.layout);
  const auto g = Conv2dGeometry::from(dx.shape, call.inputs[1].shape, call.attributes);
  require_shape(dy, {g.batch, g.out_channels, g.out_height, g.out_width}, "the output gradient");
  return {dx};
}

std::int64_t flops_grad_input(const NodeTypes& types, const Attributes& attributes) {
  return 2 * Conv2dGeometry::from(types.outputs[0].shape, types.inputs[1].shape, attributes).multiply_adds();
}

// conv2d_grad_weight(dy, x) {..., kernel: [h,w]} -> dw
std::vector<Type> infer_grad_weight(const OpCall& call) {
  require_inputs(call, 2);
  const Type& dy = call.inputs[0];
  const Type& x = call.inputs[1];
  require_rank(dy, 4, "the output gradient");
  require_rank(x, 4, "the input");
  const Pair kernel = pair_of(call.attributes, "kernel");
  const std::int64_t groups = call.attributes.integer("groups");
  if (groups < 1 || x.shape[1] % groups != 0)
    throw_user_error("{} input channels do not split into {} groups", x.shape[1], groups);
  const Shape weight{dy.shape[1], x.shape[1] / groups, kernel.height, kernel.width};
  const auto g = Conv2dGeometry::from(x.shape, weight, call.attributes);
  require_shape(dy, {g.batch, g.out_channels, g.out_height, g.out_width}, "the output gradient");
  return {{.dtype = x.dtype, .shape = weight, .layout = Layout::channels_last()}};
}

std::int64_t flops_grad_weight(const NodeTypes& types, const Attributes& attributes) {
  return 2 * Conv2dGeometry::from(types.inputs[1].shape, types.outputs[0].shape, attributes).multiply_adds();
}

void build_gradient(GradientContext& context) {
  const ValueId dy = context.output_gradient(0);
  // Weight first: the kept input dies there, so the input's gradient can take its bytes.
  if (context.wants(1)) {
    Attributes attributes = context.attributes();
    const Shape& weight = context.input_type(1).shape;
    attributes.set("kernel", std::vector<std::int64_t>{weight[2], weight[3]});
    context.set_gradient(1, context.emit(conv2d_grad_weight, {dy, context.input(0)}, attributes));
  }
  if (context.input_count() == 3 && context.wants(2)) context.set_gradient(2, context.emit(sum_to_channels, {dy}));
  if (context.wants(0)) {
    const Attributes attributes =
        with_input_shape(context.attributes(), context.input_type(0), context.builder().value(dy).type.layout);
    context.set_gradient(0, context.emit(conv2d_grad_input, {dy, context.input(1)}, attributes));
  }
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b011, .build = build_gradient}}};

}  // namespace

constinit const OpDef conv2d{.name = "conv2d", .infer = infer, .flops = flops, .gradients = kRecipes, .weight_operand = 1};

constinit const OpDef conv2d_grad_input{.name = "conv2d_grad_input",
                                        .infer = infer_grad_input,
                                        .flops = flops_grad_input,
                                        .may_accumulate = true,
                                        .weight_operand = 1};

constinit const OpDef conv2d_grad_weight{
    .name = "conv2d_grad_weight", .infer = infer_grad_weight, .flops = flops_grad_weight, .may_accumulate = true};

}  // namespace snug::ops
