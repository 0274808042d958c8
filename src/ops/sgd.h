// Which operands an sgd node has: what its kernels have to know besides its constants.
#pragma once

#include <cstddef>

#include "ir/attributes.h"

namespace snug::ops {

bool sgd_has_momentum(const Attributes& attributes);
// Whether the node multiplies its gradient by a factor: then its last input is the gradient norm.
bool sgd_clips(const Attributes& attributes, std::size_t inputs);
// Whether numbers of 16 bits are rounded by chance; then there is a key too.
bool sgd_rounds_by_chance(const Attributes& attributes);
// Where that input stands when it is there.
std::size_t sgd_norm_input(const Attributes& attributes);

}  // namespace snug::ops
