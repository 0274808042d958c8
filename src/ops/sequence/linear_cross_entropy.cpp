#include <utility>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// linear_cross_entropy(x [R,D], weight [V,D], labels i32[R], scalars, weights [R]?) {label_smoothing, rows_per_example?} ->
// Metrics
//   of this microbatch, f64[3]
// A classifier and its softmax cross-entropy in one: the logits x weight^T never exist all at once. Rows weigh as those of
// softmax_cross_entropy; a row whose label is no class, such as -100, is ignored.

namespace snug::ops {

namespace {

// The first operands of both ops.
void require_operands(const OpCall& call) {
  require_inputs(call, 4, 5);
  const Type& x = call.inputs[0];
  const Type& weight = call.inputs[1];
  const Type& labels = call.inputs[2];
  require_rank(x, 2, "the input");
  require_rank(weight, 2, "the weight");
  require_shape(weight, {weight.shape[0], x.shape[1]}, "the weight");
  require_shape(labels, {x.shape[0]}, "the labels");
  if (labels.dtype != DType::i32) throw_user_error("the labels are {}; they must be i32", name_of(labels.dtype));
  require_scalars(call.inputs[3]);
  require_example_rows(x, call.attributes);
  if (call.inputs.size() == 5) {
    require_shape(call.inputs[4], labels.shape, "the weights of the rows");
    const DType dtype = statistics_dtype(x.dtype);
    if (call.inputs[4].dtype != dtype)
      throw_user_error("the weights of the rows are {}; they must be {}", name_of(call.inputs[4].dtype), name_of(dtype));
  }
  const double smoothing = call.attributes.real("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) throw_user_error("label smoothing {} is not in [0, 1)", smoothing);
}

std::vector<Type> infer(const OpCall& call) {
  require_operands(call);
  return {metrics_type()};
}

// linear_cross_entropy_step(x, weight, labels, scalars, weights?) {as above} -> gradients of the weight and of x, multiplied by
// loss_scale, and the metrics: all from the same logits, which would otherwise be made twice
std::vector<Type> infer_step(const OpCall& call) {
  require_operands(call);
  const Type& x = call.inputs[0];
  const Type& weight = call.inputs[1];
  return {weight, x, metrics_type()};
}

// So many products of all rows with all classes, and the softmax.
template <std::int64_t Products>
std::int64_t flops(const NodeTypes& types, const Attributes& /*attributes*/) {
  const std::int64_t logits = count_operations(types.inputs[0].shape[0], types.inputs[1].shape[0]);
  return count_operations(logits, 2 * Products * types.inputs[0].shape[1] + 5);
}

void build_gradient(GradientContext& context) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < context.input_count(); ++i) inputs.push_back(context.input(i));
  const auto made = context.emit_all(linear_cross_entropy_step, std::move(inputs), context.attributes());
  if (context.wants(1)) context.set_gradient(1, made[0]);
  if (context.wants(0)) context.set_gradient(0, made[1]);
  context.set_output(0, made[2]);
}

constexpr std::array<GradientRecipe, 1> kRecipes{
    {{.name = "step", .keeps_inputs = 0b11111, .build = build_gradient, .makes_outputs = true}}};
constexpr std::array<std::string_view, 3> kStepOutputs{"weight", "input", "metrics"};

constexpr LossFacts kFacts{.metrics = {"loss", "accuracy"},
                           .ranks_by = 0,
                           .higher_is_better = false,
                           .unit = "tokens",
                           .labels = 2,
                           .weights = 4,
                           .classifier = 1,
                           .makes_scores = &linear,
                           .ignores_other_labels = true};

}  // namespace

constinit const OpDef linear_cross_entropy{.name = "linear_cross_entropy",
                                           .infer = infer,
                                           .flops = flops<1>,
                                           .gradients = kRecipes,
                                           .wide_inputs = 0b10000,
                                           .loss = &kFacts};

constinit const OpDef linear_cross_entropy_step{.name = "linear_cross_entropy_step",
                                                .infer = infer_step,
                                                .flops = flops<3>,
                                                .outputs = kStepOutputs,
                                                .exact_inputs = 0b1,
                                                .may_accumulate = true,
                                                .wide_inputs = 0b10000,
                                                .loss = &kFacts};

}  // namespace snug::ops
