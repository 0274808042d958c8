#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// softmax_cross_entropy(logits [N,K], labels i32[N], scalars, weights f32[N]?) {label_smoothing, rows_per_example?} -> Metrics of
//   this microbatch, f64[3]
// A row weighs its weight (1 without weights) / total_weight of the scalar block, so microbatches and a last partial batch add up
// to the weighted mean over the batch. Rows of weight 0 and those after the valid examples do not count, whatever their contents.
// The backward pass starts here, multiplied by loss_scale.

namespace snug::ops {

namespace {

void require_operands(const OpCall& call) {
  require_inputs(call, 3, 4);
  require_rank(call.inputs[0], 2, "the logits");
  const Type& labels = call.inputs[1];
  require_shape(labels, {call.inputs[0].shape[0]}, "the labels");
  if (labels.dtype != DType::i32) throw_user_error("the labels are {}; they must be i32", name_of(labels.dtype));
  require_scalars(call.inputs[2]);
  require_example_rows(call.inputs[0], call.attributes);
  if (call.inputs.size() == 4) {
    require_shape(call.inputs[3], labels.shape, "the weights of the rows");
    const DType dtype = statistics_dtype(call.inputs[0].dtype);
    if (call.inputs[3].dtype != dtype)
      throw_user_error("the weights of the rows are {}; they must be {}", name_of(call.inputs[3].dtype), name_of(dtype));
  }
  const double smoothing = call.attributes.real("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) throw_user_error("label smoothing {} is not in [0, 1)", smoothing);
}

std::vector<Type> infer(const OpCall& call) {
  require_operands(call);
  return {metrics_type()};
}

// softmax_cross_entropy_grad(logits, labels, scalars, weights?) {label_smoothing, rows_per_example?} -> gradient of the logits
std::vector<Type> infer_grad(const OpCall& call) {
  require_operands(call);
  return {call.inputs[0]};
}

void build_gradient(GradientContext& context) {
  std::vector<ValueId> inputs{context.input(0), context.input(1), context.input(2)};
  if (context.input_count() == 4) inputs.push_back(context.input(3));
  context.set_gradient(0, context.emit(softmax_cross_entropy_grad, std::move(inputs), context.attributes()));
}

constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "logits", .keeps_inputs = 0b1111, .build = build_gradient}}};

constexpr LossFacts kFacts{
    .metrics = {"loss", "accuracy"}, .ranks_by = 1, .higher_is_better = true, .unit = "images", .labels = 1, .weights = 3};

}  // namespace

constinit const OpDef softmax_cross_entropy{.name = "softmax_cross_entropy",
                                            .infer = infer,
                                            .flops = flops_per_input_element<5>,
                                            .gradients = kRecipes,
                                            .cheap_to_recompute = true,
                                            .wide_inputs = 0b1000,
                                            .loss = &kFacts};

constinit const OpDef softmax_cross_entropy_grad{.name = "softmax_cross_entropy_grad",
                                                 .infer = infer_grad,
                                                 .flops = flops_per_input_element<5>,
                                                 .in_place = kFirstInPlace,
                                                 .exact_inputs = 0b1,
                                                 .wide_inputs = 0b1000};

}  // namespace snug::ops
