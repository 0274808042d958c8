#include "ops/sequence/attention.h"

#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/random_draws.h"

// attention(qkv [R,(H+2K)*S], scalars, lengths i32[N]?) {heads: H, kv_heads: K, causal: 0|1, scale, dropout, key,
//   rows_per_example: T} -> y [R,H*S], log_sum_exp [R,H]
// The columns of qkv are H query heads, K key heads, K value heads of S columns each; query head h reads key head h / (H/K). With
// s = scale * q.k over the keys that a query sees, p = exp(s - log_sum_exp) and y = sum of dropped(p) * v: dropout sets p to 0 or
// divides it by (1 - dropout), as drawn by example from (seed, step, key), so however the batch is split. A query sees the keys
// of its example; where `causal`, those up to its own position; and of an example of `lengths`, those below its length. One that
// sees none gives zeros and the log_sum_exp kNothingSeen.

namespace snug::ops {

AttentionHeads AttentionHeads::from(const Shape& qkv, const Attributes& attributes) {
  const std::int64_t heads = attributes.integer("heads"), kv_heads = attributes.integer("kv_heads");
  const std::int64_t width = qkv[1];
  if (heads < 1 || kv_heads < 1 || heads > width || kv_heads > width)
    throw_user_error("{} heads and {} heads of keys do not fit into {} columns", heads, kv_heads, width);
  if (heads % kv_heads != 0) throw_user_error("{} heads do not share {} heads of keys evenly", heads, kv_heads);
  const std::int64_t parts = heads + 2 * kv_heads;
  if (width % parts != 0) throw_user_error("{} columns do not split into {} heads of queries, keys and values", width, parts);
  return {.count = heads, .of_keys = kv_heads, .size = width / parts};
}

AttentionGeometry AttentionGeometry::from(const Shape& qkv, const Attributes& attributes) {
  const auto heads = AttentionHeads::from(qkv, attributes);
  const std::int64_t length = rows_per_example(attributes);
  return {.examples = qkv[0] / length,
          .length = length,
          .key_length = length,
          .heads = heads.count,
          .kv_heads = heads.of_keys,
          .head_size = heads.size,
          .causal = flag(attributes, "causal"),
          .apart = false};
}

std::int64_t AttentionGeometry::pairs() const {
  const std::int64_t even = length % 2 == 0 ? length / 2 : length, odd = length % 2 == 0 ? length + 1 : (length + 1) / 2;
  return count_operations(examples * heads, causal ? count_operations(even, odd) : count_operations(length, key_length));
}

std::int64_t attention_flops(const AttentionGeometry& g, PairWork work) {
  return count_operations(g.pairs(), 2 * work.products * g.head_size + work.beside);
}

void require_attention_rest(const OpCall& call, std::size_t first, const AttentionGeometry& g) {
  require_scalars(call.inputs[first]);
  if (call.inputs.size() > first + 1) {
    const Type& lengths = call.inputs[first + 1];
    require_shape(lengths, {g.examples}, "the lengths");
    if (lengths.dtype != DType::i32) throw_user_error("the lengths are {}; they must be i32", name_of(lengths.dtype));
  }
  call.attributes.real("scale");
  const double rate = call.attributes.real("dropout");
  if (!(rate >= 0 && rate < 1)) throw_user_error("dropout {} is not in [0, 1)", rate);
  const std::int64_t key = call.attributes.integer("key");
  if (key < 0 || key > kMostDropoutKey) throw_user_error("the key {} is not in 0 to {}", key, kMostDropoutKey);
}

namespace {

AttentionGeometry geometry(const OpCall& call, std::size_t qkv) {
  const Type& type = call.inputs[qkv];
  require_rank(type, 2, "qkv");
  require_example_rows(type, call.attributes);
  return AttentionGeometry::from(type.shape, call.attributes);
}

Type result_type(const Type& qkv, const AttentionGeometry& g) { return {.dtype = qkv.dtype, .shape = {qkv.shape[0], g.width()}}; }

Type probabilities_type(const Type& qkv, const AttentionGeometry& g) {
  return {.dtype = qkv.dtype, .shape = {qkv.shape[0], g.heads * g.length}};
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 2, 3);
  const Type& qkv = call.inputs[0];
  const AttentionGeometry g = geometry(call, 0);
  require_attention_rest(call, 1, g);
  return {result_type(qkv, g), {.dtype = statistics_dtype(qkv.dtype), .shape = {qkv.shape[0], g.heads}}};
}

// attention_grad(dy [R,H*S], qkv, y, log_sum_exp, scalars, lengths?) {as attention} -> dqkv
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 5, 6);
  const Type& qkv = call.inputs[1];
  const AttentionGeometry g = geometry(call, 1);
  require_attention_rest(call, 4, g);
  require_same_shape(call.inputs[0], result_type(qkv, g), "the output gradient and the output");
  require_same_shape(call.inputs[2], result_type(qkv, g), "the output and what qkv gives");
  require_shape(call.inputs[3], {qkv.shape[0], g.heads}, "the log_sum_exp");
  return {qkv};
}

// attention_probabilities(qkv, scalars, lengths?) {as attention} -> p before dropout [R,H*T]: row r, column h * T + key; 0 where
// the query does not see the key
std::vector<Type> infer_probabilities(const OpCall& call) {
  require_inputs(call, 2, 3);
  const AttentionGeometry g = geometry(call, 0);
  require_attention_rest(call, 1, g);
  return {probabilities_type(call.inputs[0], g)};
}

// attention_grad_probabilities(dy [R,H*S], qkv, probabilities, scalars, lengths?) {as attention} -> dqkv
std::vector<Type> infer_grad_probabilities(const OpCall& call) {
  require_inputs(call, 4, 5);
  const Type& qkv = call.inputs[1];
  const AttentionGeometry g = geometry(call, 1);
  require_attention_rest(call, 3, g);
  require_same_shape(call.inputs[0], result_type(qkv, g), "the output gradient and the output");
  require_same_shape(call.inputs[2], probabilities_type(qkv, g), "the probabilities and what qkv gives");
  return {qkv};
}

template <PairWork Work, std::size_t Qkv>
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return attention_flops(AttentionGeometry::from(types.inputs[Qkv].shape, attributes), Work);
}

// Appends the inputs from number 1 on: scalars, and lengths where there are some.
std::vector<ValueId> and_the_rest(GradientContext& context, std::vector<ValueId> inputs) {
  for (std::size_t i = 1; i < context.input_count(); ++i) inputs.push_back(context.input(i));
  return inputs;
}

void grad_from(GradientContext& context, ValueId y, ValueId log_sum_exp) {
  context.set_gradient(
      0, context.emit(attention_grad, and_the_rest(context, {context.output_gradient(0), context.input(0), y, log_sum_exp}),
                      context.attributes()));
}

void grad_from_log_sum_exp(GradientContext& context) { grad_from(context, context.output(0), context.output(1)); }

void grad_from_inputs(GradientContext& context) {
  const auto again = context.emit_all(attention, and_the_rest(context, {context.input(0)}), context.attributes());
  grad_from(context, again[0], again[1]);
}

ValueId make_probabilities(SectionBuilder& builder, const Node& forward) {
  return builder
      .emit(attention_probabilities, forward.inputs, forward.attributes,
            {.name = forward.layer + ".probabilities", .layer = forward.layer})
      .front();
}

void grad_from_probabilities(GradientContext& context) {
  context.set_gradient(0, context.emit(attention_grad_probabilities,
                                       and_the_rest(context, {context.output_gradient(0), context.input(0), context.extra()}),
                                       context.attributes()));
}

constexpr std::array<GradientRecipe, 3> kRecipes{
    {{.name = "log_sum_exp", .keeps_inputs = 0b101, .keeps_outputs = 0b11, .build = grad_from_log_sum_exp},
     {.name = "probabilities", .keeps_inputs = 0b101, .make_extra = make_probabilities, .build = grad_from_probabilities},
     {.name = "inputs", .keeps_inputs = 0b101, .build = grad_from_inputs, .repeats_forward = true}}};
constexpr std::array<std::string_view, 2> kOutputs{"y", "log_sum_exp"};

void without_dropout(Attributes& attributes) { attributes.set("dropout", 0.0); }

constexpr std::array<std::string_view, 3> kStepAttributes{"heads", "kv_heads", "scale"};

// Keys and values of the rows so far.
std::vector<Type> states_of_step(const NodeTypes& types, const Attributes& attributes, std::int64_t context) {
  const Type& qkv = types.inputs[0];
  const auto g = AttentionGeometry::from(qkv.shape, attributes);
  const Type cache{.dtype = qkv.dtype, .shape = {qkv.shape[0] * context, g.kv_heads * g.head_size}};
  return {cache, cache};
}

std::string_view objection_to_steps(const NodeTypes& types, const Attributes& attributes) {
  if (attributes.integer("causal") == 0) return "it sees rows that come later";
  return types.inputs.size() > 2 ? "its examples have lengths" : "";
}

constexpr InSteps kInSteps{
    .op = &attention_step, .inputs = 1, .attributes = kStepAttributes, .states = states_of_step, .objection = objection_to_steps};

}  // namespace

constinit const OpDef attention{.name = "attention",
                                .infer = infer,
                                .flops = flops<kAttentionForward, 0>,
                                .gradients = kRecipes,
                                .outputs = kOutputs,
                                .for_evaluation = without_dropout,
                                .in_steps = kInSteps};

// From rounded queries and keys the exponentials would not belong to the log_sum_exp.
constinit const OpDef attention_grad{
    .name = "attention_grad", .infer = infer_grad, .flops = flops<kAttentionBackward, 1>, .exact_inputs = 0b1010};

constinit const OpDef attention_probabilities{
    .name = "attention_probabilities", .infer = infer_probabilities, .flops = flops<PairWork{.products = 1, .beside = 5}, 0>};

constinit const OpDef attention_grad_probabilities{.name = "attention_grad_probabilities",
                                                   .infer = infer_grad_probabilities,
                                                   .flops = flops<PairWork{.products = 4, .beside = 4}, 1>};

}  // namespace snug::ops
