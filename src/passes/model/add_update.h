// Adds the optimizer: for each that has a gradient the op and the states of its update rule (ops/updates/update_rule.h), in the
// section `update`.
//
//   section micro                                  section update
//     w.grad@1 = add(w.grad@0, %g)          ->       w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0)
//
// With clipping, or when overflows are to be found, the sums of the gradients' squares come first, one node per gradient, and the
// factor that every update then reads; both stay in the state gradient_norm. A rule that counts its updates has the count before
// the first. States start at zero, in the section `init`, and are reset where something else moves a parameter's elements
// (OpDef::moves_elements).
#pragma once

#include "ir/program.h"
#include "ops/updates/update_rule.h"

namespace snug {

// UserError about options that are not possible.
Program add_update(Program program, const ops::UpdateOptions& options);

}  // namespace snug
