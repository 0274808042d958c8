#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// sum_to_channels(x) -> x summed over everything but dimension 1: the gradient of a bias, and for batch norm's parameters the sum
// over groups

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  const Type& x = call.inputs[0];
  if (x.shape.rank() < 2) throw_user_error("the input is {}; it must have at least 2 dimensions", to_string(x.shape));
  return {{.dtype = x.dtype, .shape = {x.shape[1]}}};
}

}  // namespace

constinit const OpDef sum_to_channels{
    .name = "sum_to_channels", .infer = infer, .flops = flops_per_input_element<1>, .may_accumulate = true};

}  // namespace snug::ops
