// Small pieces that several ops share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/builder.h"
#include "ir/op.h"
#include "ir/scalars.h"

namespace snug::ops {

// UserError unless there are between `least` and `most` inputs.
void require_inputs(const OpCall& call, std::size_t least, std::size_t most);
inline void require_inputs(const OpCall& call, std::size_t count) { require_inputs(call, count, count); }

// UserErrors that name the operand.
void require_rank(const Type& type, std::size_t rank, std::string_view what);
void require_same_shape(const Type& a, const Type& b, std::string_view what);
void require_shape(const Type& type, const Shape& shape, std::string_view what);
void require_scalars(const Type& type);
// rows_per_example of an op that leaves out the rows of padding: at least 1, and it divides the leading dimension.
void require_example_rows(const Type& type, const Attributes& attributes);
// ... of one that draws random numbers: 0 too, where the value does not depend on the examples.
void require_drawn_rows(const Type& type, const Attributes& attributes);
// i32, one for each row of `x`.
void require_positions_of_rows(const Type& positions, const Type& x);
// An attribute that says yes (1) or no (0).
bool flag(const Attributes& attributes, std::string_view name);
// An `epsilon` of at least 0, which normalization adds to a variance.
void require_epsilon(const OpCall& call);

Type scalars_type();
Type metrics_type();
Type gradient_norm_type();
Type updates_type();

// f64 stays f64; everything narrower keeps its statistics in f32.
DType statistics_dtype(DType dtype);

// The same elements in the same places, stored as another dtype.
Type stored_as(Type type, DType dtype);

// Output 0 has the type of input 0.
std::vector<Type> infer_same_as_first(const OpCall& call);
// Two operands of one shape; the output has the first's type.
std::vector<Type> infer_same_as_both(const OpCall& call);

// Whether its elements lie in logical order. With one channel, or one pixel, both layouts do.
bool lies_in_logical_order(const Type& type);

// The type of the forward input, for a gradient op that does not read it: from the attribute "input_shape", and "channels_last"
// (0|1) unless the layout is `untold`, the one that the op assumes. An opaque layout cannot be described so.
Type type_from_input_shape(const Type& gradient, const Attributes& attributes, const Layout& untold);
Attributes with_input_shape(const Attributes& attributes, const Type& input, const Layout& untold);
// Assumed of values with windows over [N,C,H,W].
inline Layout layout_of_images() { return Layout::channels_last(); }

// results * each; UserError when that cannot be counted: each factor fits, but a hostile program's product need not.
std::int64_t count_operations(std::int64_t results, std::int64_t each);

template <std::int64_t PerElement>
std::int64_t flops_per_output_element(const NodeTypes& types, const Attributes& /*attributes*/) {
  return PerElement * types.outputs[0].elements();
}
template <std::int64_t PerElement>
std::int64_t flops_per_input_element(const NodeTypes& types, const Attributes& /*attributes*/) {
  return PerElement * types.inputs[0].elements();
}

inline constexpr std::array<InPlacePromise, 1> kFirstInPlace{{{0, 0}}};
inline constexpr std::array<InPlacePromise, 2> kBothInPlace{{{0, 0}, {0, 1}}};

}  // namespace snug::ops
