#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sequence/attention.h"

// attention_step(qkv [R,(H+2K)*S], keys [R*C,K*S], values [R*C,K*S], positions i32[R]) {heads: H, kv_heads: K, scale}
//   -> y [R,H*S], keys, values
// Causal attention of one row of each of R examples, where `keys` and `values` hold those of the example's rows before it: of
// example r at position t they are row r * C + t. The row's own are written there, and its queries see positions 0 to t. An
// example whose position is not in 0 to C - 1 is padding: its y is zero, and nothing is written.

namespace snug::ops {

StepGeometry StepGeometry::from(const Shape& qkv, const Shape& keys, const Attributes& attributes) {
  const auto heads = AttentionHeads::from(qkv, attributes);
  const std::int64_t examples = qkv[0];
  if (keys[0] % examples != 0) throw_user_error("{} rows of keys do not belong to {} examples", keys[0], examples);
  return {.examples = examples,
          .context = keys[0] / examples,
          .heads = heads.count,
          .kv_heads = heads.of_keys,
          .head_size = heads.size};
}

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 4);
  const Type& qkv = call.inputs[0];
  const Type& keys = call.inputs[1];
  require_rank(qkv, 2, "qkv");
  require_rank(keys, 2, "the keys");
  const auto g = StepGeometry::from(qkv.shape, keys.shape, call.attributes);
  require_shape(keys, {g.examples * g.context, g.kv_width()}, "the keys");
  require_same_shape(keys, call.inputs[2], "the keys and the values");
  if (keys.dtype != qkv.dtype) throw_user_error("the keys are {} and qkv is {}", name_of(keys.dtype), name_of(qkv.dtype));
  require_positions_of_rows(call.inputs[3], qkv);
  call.attributes.real("scale");
  return {{.dtype = qkv.dtype, .shape = {g.examples, g.width()}}, keys, keys};
}

// Of the last position, which sees the most keys.
std::int64_t flops(const NodeTypes& types, const Attributes& attributes) {
  const auto g = StepGeometry::from(types.inputs[0].shape, types.inputs[1].shape, attributes);
  return count_operations(count_operations(g.examples * g.heads, g.context), 4 * g.head_size + 5);
}

constexpr std::array<InPlacePromise, 2> kInPlace{{{1, 1}, {2, 2}}};
constexpr std::array<std::string_view, 3> kOutputs{"y", "keys", "values"};

}  // namespace

constinit const OpDef attention_step{
    .name = "attention_step", .infer = infer, .flops = flops, .in_place = kInPlace, .outputs = kOutputs};

}  // namespace snug::ops
