// Chooses gradient recipes so that the model keeps fewer bytes for backward: every node begins with its first recipe, and recipes
// change where that drops a forward value at a smaller cost in bytes. Time is not weighed, and an extra of the first recipe is
// not given up by itself: the first recipe is the one to take where nothing is gained. Exact.
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
