// Chooses, for every forward node, the gradient recipe that makes the model keep the fewest bytes for backward. Exact.
//
// A recipe that keeps a value costs nothing when another node keeps that value anyway: a ReLU before a convolution keeps its
// output, which is the convolution's input; before a max-pool it keeps one bit per element and the pool its argmax, and the value
// itself is dropped. Only what backward really reads counts as kept: a frozen convolution does not keep its input.
#pragma once

#include "ir/program.h"

namespace snug {

// Writes the choice to the nodes' attribute `recipe`.
Program choose_recipes(Program model);

}  // namespace snug
