#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sequence/attention.h"

// cross_attention(q [R,H*S], kv [U,2K*S], scalars, lengths i32[N]?) {heads: H, kv_heads: K, scale, dropout, key,
//   rows_per_example: T, key_rows_per_example: L} -> y [R,H*S], log_sum_exp [R,H]
// As attention (attention.cpp), of T queries of each example with L keys and values that come from elsewhere, as a decoder's from
// its encoder: the columns of kv are K key heads and K value heads of S columns each. A query sees all keys of its example, those
// below its entry of `lengths` where there are some.

namespace snug::ops {

AttentionGeometry AttentionGeometry::from_apart(const Shape& q, const Shape& kv, const Attributes& attributes) {
  const std::int64_t heads = attributes.integer("heads"), kv_heads = attributes.integer("kv_heads");
  if (heads < 1 || kv_heads < 1 || q[1] % heads != 0)
    throw_user_error("{} columns of queries do not split into {} heads", q[1], heads);
  const std::int64_t size = q[1] / heads;
  if (heads % kv_heads != 0) throw_user_error("{} heads do not share {} heads of keys evenly", heads, kv_heads);
  if (kv[1] % 2 != 0 || kv[1] / 2 % kv_heads != 0 || kv[1] / 2 / kv_heads != size) {
    throw_user_error("{} columns of keys and values are not {} heads of {} columns each, as the queries' are", kv[1], kv_heads,
                     size);
  }
  const std::int64_t length = rows_per_example(attributes), key_length = attributes.integer("key_rows_per_example");
  if (key_length < 1) throw_user_error("key_rows_per_example is {}; it must be at least 1", key_length);
  return {.examples = q[0] / length,
          .length = length,
          .key_length = key_length,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = size,
          .causal = false,
          .apart = true};
}

namespace {

AttentionGeometry geometry(const OpCall& call, std::size_t q) {
  const Type &queries = call.inputs[q], &keys = call.inputs[q + 1];
  require_rank(queries, 2, "q");
  require_rank(keys, 2, "kv");
  require_example_rows(queries, call.attributes);
  const auto g = AttentionGeometry::from_apart(queries.shape, keys.shape, call.attributes);
  if (keys.shape[0] != g.key_rows()) {
    throw_user_error("{} rows of keys and values are not {} of each of {} examples", keys.shape[0], g.key_length, g.examples);
  }
  if (keys.dtype != queries.dtype) {
    throw_user_error("the queries are {} and the keys and values {}; they must be of one type", name_of(queries.dtype),
                     name_of(keys.dtype));
  }
  return g;
}

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 3, 4);
  const Type& q = call.inputs[0];
  const AttentionGeometry g = geometry(call, 0);
  require_attention_rest(call, 2, g);
  return {q, {.dtype = statistics_dtype(q.dtype), .shape = {q.shape[0], g.heads}}};
}

// cross_attention_grad(dy [R,H*S], q, kv, y, log_sum_exp, scalars, lengths?) {as cross_attention} -> dq, dkv
std::vector<Type> infer_grad(const OpCall& call) {
  require_inputs(call, 6, 7);
  const Type& q = call.inputs[1];
  const AttentionGeometry g = geometry(call, 1);
  require_attention_rest(call, 5, g);
  require_same_shape(call.inputs[0], q, "the output gradient and the output");
  require_same_shape(call.inputs[3], q, "the output and the queries");
  require_shape(call.inputs[4], {q.shape[0], g.heads}, "the log_sum_exp");
  return {q, call.inputs[2]};
}

template <PairWork Work, std::size_t Q>
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  return attention_flops(AttentionGeometry::from_apart(types.inputs[Q].shape, types.inputs[Q + 1].shape, attributes), Work);
}

void grad_from(GradientContext& context, ValueId y, ValueId log_sum_exp) {
  std::vector<ValueId> inputs{context.output_gradient(0), context.input(0), context.input(1), y, log_sum_exp};
  for (std::size_t i = 2; i < context.input_count(); ++i) inputs.push_back(context.input(i));
  const auto gradients = context.emit_all(cross_attention_grad, inputs, context.attributes());
  context.set_gradient(0, gradients[0]);
  context.set_gradient(1, gradients[1]);
}

void grad_from_log_sum_exp(GradientContext& context) { grad_from(context, context.output(0), context.output(1)); }

void grad_from_inputs(GradientContext& context) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < context.input_count(); ++i) inputs.push_back(context.input(i));
  const auto again = context.emit_all(cross_attention, inputs, context.attributes());
  grad_from(context, again[0], again[1]);
}

constexpr std::array<GradientRecipe, 2> kRecipes{
    {{.name = "log_sum_exp", .keeps_inputs = 0b1011, .keeps_outputs = 0b11, .build = grad_from_log_sum_exp},
     {.name = "inputs", .keeps_inputs = 0b1011, .build = grad_from_inputs, .repeats_forward = true}}};
constexpr std::array<std::string_view, 2> kOutputs{"y", "log_sum_exp"};

void without_dropout(Attributes& attributes) { attributes.set("dropout", 0.0); }

}  // namespace

constinit const OpDef cross_attention{.name = "cross_attention",
                                      .infer = infer,
                                      .flops = flops<kAttentionForward, 0>,
                                      .gradients = kRecipes,
                                      .outputs = kOutputs,
                                      .for_evaluation = without_dropout};

// From rounded queries and keys the exponentials would not belong to the log_sum_exp.
constinit const OpDef cross_attention_grad{
    .name = "cross_attention_grad", .infer = infer_grad, .flops = flops<kAttentionBackward, 1>, .exact_inputs = 0b10110};

}  // namespace snug::ops
