// Which operands an sgd node has.
#pragma once

#include <array>
#include <cstddef>

#include "ir/op.h"

namespace snug::ops {

bool sgd_has_momentum(const Attributes& attributes);
// Whether the node multiplies its gradient by a factor: then its last input is the gradient norm.
bool sgd_clips(const Attributes& attributes, std::size_t inputs);
// Whether 16-bit numbers are rounded stochastically; then there is a key too.
bool sgd_rounds_stochastically(const Attributes& attributes);
// UserError about an invalid key, where there is one.
void require_rounding_key(const Attributes& attributes);
// The index of that input, if there is one.
std::size_t sgd_norm_input(const Attributes& attributes);

// The codes and the scales of a weight's momentum in 8 bits.
std::array<Type, 2> quantized_momentum_types(const Type& weight);

}  // namespace snug::ops
