#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// The ops of the section `init`. Each takes the state that it writes, in place, for its type.
//   fill(w) {value}                    init_normal(w, scalars) {std, key}            init_uniform(w, scalars) {bound, key}
// Random values are drawn per logical element, so they do not depend on the layout.

namespace snug::ops {

namespace {

std::vector<Type> infer_fill(const OpCall& call) {
  call.attributes.real("value");
  return infer_same_as_first(call);
}

std::vector<Type> infer_random(const OpCall& call, std::string_view spread) {
  require_inputs(call, 2);
  require_scalars(call.inputs[1]);
  if (!(call.attributes.real(spread) >= 0)) throw_user_error("{} {} is negative", spread, call.attributes.real(spread));
  call.attributes.integer("key");
  return {call.inputs[0]};
}

std::vector<Type> infer_normal(const OpCall& call) { return infer_random(call, "std"); }
std::vector<Type> infer_uniform(const OpCall& call) { return infer_random(call, "bound"); }

}  // namespace

constinit const OpDef fill{.name = "fill", .infer = infer_fill, .in_place = kFirstInPlace};
constinit const OpDef init_normal{.name = "init_normal", .infer = infer_normal, .in_place = kFirstInPlace};
constinit const OpDef init_uniform{.name = "init_uniform", .infer = infer_uniform, .in_place = kFirstInPlace};

}  // namespace snug::ops
