#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// softmax_cross_entropy(logits [N,K], labels i32[N], scalars) {label_smoothing} -> Metrics of this microbatch, f64[3]
// Each valid example weighs 1 / batch_examples of the scalar block, so microbatches and a last partial batch add up to the mean
// over the batch. Rows behind valid_examples weigh nothing. The backward pass starts here, multiplied by loss_scale.

namespace snug::ops {

namespace {

void require_operands(const OpCall& call) {
  require_inputs(call, 3);
  require_rank(call.inputs[0], 2, "the logits");
  const Type& labels = call.inputs[1];
  require_shape(labels, {call.inputs[0].shape[0]}, "the labels");
  if (labels.dtype != DType::i32) throw_user_error("the labels are {}; they must be i32", name_of(labels.dtype));
  require_scalars(call.inputs[2]);
  const double smoothing = call.attributes.real("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) throw_user_error("label smoothing {} is not in [0, 1)", smoothing);
}

std::vector<Type> infer(const OpCall& call) {
  require_operands(call);
  return {metrics_type()};
}

// softmax_cross_entropy_grad(logits, labels, scalars) {label_smoothing} -> gradient of the logits
std::vector<Type> infer_grad(const OpCall& call) {
  require_operands(call);
  return {call.inputs[0]};
}

void build_gradient(GradientContext& context) {
  context.set_gradient(
      0, context.emit(softmax_cross_entropy_grad, {context.input(0), context.input(1), context.input(2)}, context.attributes()));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "logits", .keeps_inputs = 0b111, .build = build_gradient}}};

}  // namespace

constinit const OpDef softmax_cross_entropy{.name = "softmax_cross_entropy",
                                            .infer = infer,
                                            .flops = flops_per_input_element<5>,
                                            .gradients = kRecipes,
                                            .is_loss = true,
                                            .cheap_to_recompute = true};

constinit const OpDef softmax_cross_entropy_grad{.name = "softmax_cross_entropy_grad",
                                                 .infer = infer_grad,
                                                 .flops = flops_per_input_element<5>,
                                                 .in_place = kFirstInPlace,
                                                 .exact_inputs = 0b1};

}  // namespace snug::ops
