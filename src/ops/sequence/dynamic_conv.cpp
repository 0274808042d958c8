#include "ops/sequence/dynamic_conv.h"

#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/common.h"
#include "ops/ops.h"

// Depthwise convolutions along sequences, after Wu et al., "Pay Less Attention with Lightweight and Dynamic Convolutions" (2019).
// The D/H neighboring columns of a head share one kernel of K taps:
//
// lightweight_conv(x [R,D], weight [H,K]) {heads: H, kernel: K, causal: 0|1, rows_per_example: T} -> y [R,D], with
//   y[r,c] = sum over k of weight[h,k] * x[r + k - left, c], where h is the head of column c
// dynamic_conv(x [R,D], weight [R,H*K]) {as lightweight_conv} -> the same with kernels of each row's own, weight[r, h*K + k]
//
// `left` is K - 1 where `causal`, so that the last tap sees the row itself, and otherwise K / 2, with the middle tap there. Rows
// beyond the example count as zero. The paper's softmax over taps is the op softmax before it, on rows of K numbers, and its
// DropConnect the op dropout between the two: neither would save a pass over more than the weights here.

namespace snug::ops {

DynamicConvGeometry DynamicConvGeometry::from(const Shape& x, const Attributes& attributes) {
  const std::int64_t heads = attributes.integer("heads"), kernel = attributes.integer("kernel");
  if (heads < 1 || x[1] % heads != 0) throw_user_error("{} columns do not split into {} heads", x[1], heads);
  if (kernel < 1) throw_user_error("a kernel of {} taps is not possible; use at least 1", kernel);
  const bool causal = flag(attributes, "causal");
  if (!causal && kernel % 2 == 0) throw_user_error("a kernel of {} taps has no middle; use an odd number, or causal=1", kernel);
  count_operations(x.elements(), kernel);  // refuses what cannot be counted
  const std::int64_t length = rows_per_example(attributes);
  return {.examples = x[0] / length,
          .length = length,
          .columns = x[1],
          .heads = heads,
          .kernel = kernel,
          .left = causal ? kernel - 1 : kernel / 2};
}

Shape DynamicConvGeometry::weight_of_rows() const { return {rows(), heads * kernel}; }

namespace {

enum class Kernels : std::uint8_t { shared, of_rows };

template <Kernels Whose>
Shape weight_shape(const DynamicConvGeometry& g) {
  return Whose == Kernels::shared ? g.shared_weight() : g.weight_of_rows();
}

// Of `rows` [R,D], named in messages.
DynamicConvGeometry geometry(const Type& rows, std::string_view what, const Attributes& attributes) {
  require_rank(rows, 2, what);
  require_example_rows(rows, attributes);
  return DynamicConvGeometry::from(rows.shape, attributes);
}

template <Kernels Whose>
void require_weight(const Type& weight, const DynamicConvGeometry& g) {
  require_shape(weight, weight_shape<Whose>(g), "the weight");
}

template <Kernels Whose>
std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_weight<Whose>(call.inputs[1], geometry(call.inputs[0], "the input", call.attributes));
  return {call.inputs[0]};
}

// lightweight_conv_grad_input(dy [R,D], weight [H,K]), dynamic_conv_grad_input(dy [R,D], weight [R,H*K]) {as forward} -> dx [R,D]
template <Kernels Whose>
std::vector<Type> infer_grad_input(const OpCall& call) {
  require_inputs(call, 2);
  require_weight<Whose>(call.inputs[1], geometry(call.inputs[0], "the output gradient", call.attributes));
  return {call.inputs[0]};
}

// lightweight_conv_grad_weight(dy [R,D], x [R,D]) {as forward} -> dweight [H,K], summed over the rows
// dynamic_conv_grad_weight(dy [R,D], x [R,D]) {as forward} -> dweight [R,H*K], zero for taps that lie beyond the example
template <Kernels Whose>
std::vector<Type> infer_grad_weight(const OpCall& call) {
  require_inputs(call, 2);
  require_same_shape(call.inputs[0], call.inputs[1], "the output gradient and the input");
  return {{.dtype = call.inputs[0].dtype, .shape = weight_shape<Whose>(geometry(call.inputs[0], "the input", call.attributes))}};
}

// A product and a sum for each tap of each element of the rows.
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return 2 * count_operations(types.inputs[0].elements(), attributes.integer("kernel"));
}

void build_gradient(GradientContext& context, const OpDef& grad_input, const OpDef& grad_weight) {
  const ValueId dy = context.output_gradient(0);
  if (context.wants(1)) context.set_gradient(1, context.emit(grad_weight, {dy, context.input(0)}, context.attributes()));
  if (context.wants(0)) context.set_gradient(0, context.emit(grad_input, {dy, context.input(1)}, context.attributes()));
}
void build_lightweight(GradientContext& context) {
  build_gradient(context, lightweight_conv_grad_input, lightweight_conv_grad_weight);
}
void build_dynamic(GradientContext& context) { build_gradient(context, dynamic_conv_grad_input, dynamic_conv_grad_weight); }

constexpr std::array<GradientRecipe, 1> kLightweightRecipes{
    {{.name = "inputs", .keeps_inputs = 0b11, .build = build_lightweight}}};
constexpr std::array<GradientRecipe, 1> kDynamicRecipes{{{.name = "inputs", .keeps_inputs = 0b11, .build = build_dynamic}}};

std::string_view objection_to_steps(const NodeTypes& /*types*/, const Attributes& attributes) {
  if (!flag(attributes, "causal")) return "it sees rows that come later";
  return attributes.integer("kernel") > 1 ? "it sees rows that came before" : "";
}
constexpr InSteps kInSteps{.objection = objection_to_steps};

}  // namespace

// Nothing is written in place: a row is read by the taps of its neighbors.
constinit const OpDef lightweight_conv{.name = "lightweight_conv",
                                       .infer = infer<Kernels::shared>,
                                       .flops = flops,
                                       .gradients = kLightweightRecipes,
                                       .cheap_to_recompute = true,
                                       .in_steps = kInSteps};

constinit const OpDef lightweight_conv_grad_input{
    .name = "lightweight_conv_grad_input", .infer = infer_grad_input<Kernels::shared>, .flops = flops, .may_accumulate = true};

constinit const OpDef lightweight_conv_grad_weight{
    .name = "lightweight_conv_grad_weight", .infer = infer_grad_weight<Kernels::shared>, .flops = flops, .may_accumulate = true};

constinit const OpDef dynamic_conv{.name = "dynamic_conv",
                                   .infer = infer<Kernels::of_rows>,
                                   .flops = flops,
                                   .gradients = kDynamicRecipes,
                                   .cheap_to_recompute = true,
                                   .in_steps = kInSteps};

constinit const OpDef dynamic_conv_grad_input{
    .name = "dynamic_conv_grad_input", .infer = infer_grad_input<Kernels::of_rows>, .flops = flops, .may_accumulate = true};

constinit const OpDef dynamic_conv_grad_weight{
    .name = "dynamic_conv_grad_weight", .infer = infer_grad_weight<Kernels::of_rows>, .flops = flops, .may_accumulate = true};

}  // namespace snug::ops
