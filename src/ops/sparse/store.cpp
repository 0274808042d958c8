#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"

// The ops that make and change the sparse store (ops/sparse/sparse.h). All of them work in place.
//   init_sparse_pattern(columns, rows, scalars) {tensor_rows, tensor_columns, tensor_nonzeros, bits}  -> columns, rows
//       a random pattern with that many nonzeros per tensor
//   init_sparse(values, columns, rows, scalars) {first_row, weight_shape, bits, spread, uniform: 0|1, key}  -> values
//       one tensor's values: the numbers that init_normal or init_uniform draw at these places of the dense tensor
//   rewire(values, columns, rows, threshold, scalars, momentum?) {tensor_rows, tensor_columns, bits, target, per_tensor: 0|1}
//       -> values, columns, rows, threshold, pruned, momentum
//       Prunes values and regrows as many, 0, at random places; the result is a valid store again. Momentum becomes 0.
//       `target`: how many to prune.
//         per_tensor = 0 (dynamic sparse reparameterization): those below the threshold in all tensors. If they are fewer than
//         0.9 of the target, the threshold doubles; if more than 1.1, it halves. Each tensor grows in proportion to what survived
//         in it; what a full one cannot take goes to the others.
//         per_tensor = 1 (sparse evolutionary training): in each tensor the smallest, as many as its share of the target; they
//         regrow in the same tensor.
//       `pruned`: how many were pruned.

namespace snug::ops {

namespace {

constexpr std::int64_t kMostNonzeros = std::int64_t{1} << 30U;

void require_rows(const Type& rows, std::int64_t count) {
  if (rows != sparse_rows_type(count)) {
    throw_user_error("the rows are {}; they must be {}", to_string(rows), to_string(sparse_rows_type(count)));
  }
}

void require_columns(const Type& columns, std::int64_t nonzeros, int bits) {
  if (nonzeros > kMostNonzeros) throw_user_error("{} nonzeros are too many", nonzeros);
  if (columns != sparse_columns_type(nonzeros, bits)) {
    throw_user_error("the columns are {}; {} values need {}", to_string(columns), nonzeros,
                     to_string(sparse_columns_type(nonzeros, bits)));
  }
}

std::vector<Type> infer_pattern(const OpCall& call) {
  require_inputs(call, 3);
  const SparseGrid grid = SparseGrid::from(call.attributes);
  const std::vector<std::int64_t>& nonzeros = call.attributes.integers("tensor_nonzeros");
  if (nonzeros.size() != grid.rows.size())
    throw_user_error("{} numbers of nonzeros for {} tensors", nonzeros.size(), grid.rows.size());
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < nonzeros.size(); ++t) {
    if (nonzeros[t] < 0 || nonzeros[t] > grid.elements(t))
      throw_user_error("{} nonzeros do not fit a tensor of {}", nonzeros[t], grid.elements(t));
    if ((sum += nonzeros[t]) > kMostNonzeros) throw_user_error("{} nonzeros are too many", sum);
  }
  require_columns(call.inputs[0], sum, grid.bits);
  require_rows(call.inputs[1], grid.all_rows());
  require_scalars(call.inputs[2]);
  return {call.inputs[0], call.inputs[1]};
}

std::vector<Type> infer_values(const OpCall& call) {
  require_inputs(call, 4);
  require_rank(call.inputs[0], 1, "the list of values");
  const SparseSlot slot = SparseSlot::from(call.attributes);
  require_columns(call.inputs[1], call.inputs[0].elements(), slot.bits);
  const Type& rows = call.inputs[2];
  if (rows.dtype != DType::i32 || rows.shape.rank() != 1 || rows.elements() < slot.first_row + slot.rows() + 1)
    throw_user_error("the rows are {}; they must be i32 and reach up to row {}", to_string(rows), slot.first_row + slot.rows());
  require_scalars(call.inputs[3]);
  if (!(call.attributes.real("spread") >= 0)) throw_user_error("spread {} is negative", call.attributes.real("spread"));
  call.attributes.integer("uniform");
  call.attributes.integer("key");
  return {call.inputs[0]};
}

std::vector<Type> infer_rewire(const OpCall& call) {
  require_inputs(call, 5, 6);
  require_rank(call.inputs[0], 1, "the list of values");
  const SparseGrid grid = SparseGrid::from(call.attributes);
  const std::int64_t nonzeros = call.inputs[0].elements();
  require_columns(call.inputs[1], nonzeros, grid.bits);
  require_rows(call.inputs[2], grid.all_rows());
  if (call.inputs[3] != sparse_threshold_type())
    throw_user_error("the threshold is {}; it must be {}", to_string(call.inputs[3]), to_string(sparse_threshold_type()));
  require_scalars(call.inputs[4]);
  const std::int64_t target = call.attributes.integer("target");
  if (target < 0 || target > nonzeros) throw_user_error("a target of {} does not go with {} nonzeros", target, nonzeros);
  call.attributes.integer("per_tensor");
  std::vector<Type> outputs{call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[3], sparse_threshold_type()};
  if (call.inputs.size() == 6) {
    require_same_shape(call.inputs[0], call.inputs[5], "values and momentum");
    outputs.push_back(call.inputs[5]);
  }
  return outputs;
}

constexpr std::array<InPlacePromise, 2> kPatternInPlace{{{0, 0}, {1, 1}}};
constexpr std::array<std::string_view, 2> kPatternOutputs{"columns", "rows"};
constexpr std::array<InPlacePromise, 5> kRewireInPlace{{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {5, 5}}};
constexpr std::array<std::string_view, 6> kRewireOutputs{"weight", "columns", "rows", "threshold", "pruned", "momentum"};

}  // namespace

constinit const OpDef init_sparse_pattern{
    .name = "init_sparse_pattern", .infer = infer_pattern, .in_place = kPatternInPlace, .outputs = kPatternOutputs};
constinit const OpDef init_sparse{.name = "init_sparse", .infer = infer_values, .in_place = kFirstInPlace};
constinit const OpDef rewire{.name = "rewire",
                             .infer = infer_rewire,
                             .in_place = kRewireInPlace,
                             .outputs = kRewireOutputs,
                             .may_recompute = false,
                             .moves_elements = true};

}  // namespace snug::ops
