// Which operands an sgd node has: what its kernels have to know besides its constants.
#pragma once

#include <array>
#include <cstddef>

#include "ir/op.h"

namespace snug::ops {

bool sgd_has_momentum(const Attributes& attributes);
// Whether the node multiplies its gradient by a factor: then its last input is the gradient norm.
bool sgd_clips(const Attributes& attributes, std::size_t inputs);
// Whether numbers of 16 bits are rounded by chance; then there is a key too.
bool sgd_rounds_by_chance(const Attributes& attributes);
// UserError about a key that is none, where there is one.
void require_rounding_key(const Attributes& attributes);
// Where that input stands when it is there.
std::size_t sgd_norm_input(const Attributes& attributes);

// The codes and the scales of a weight's momentum in 8 bits.
std::array<Type, 2> quantized_momentum_types(const Type& weight);

}  // namespace snug::ops
