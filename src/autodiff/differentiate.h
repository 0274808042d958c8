// Automatic differentiation: the section `forward` of a model becomes `micro`, forward and backward of one microbatch, and
// `eval`, forward alone with what is read in evaluation (Section::in_evaluation).
//
//   section forward                                 section micro
//     %y = linear(%x, w@0) ...                        %y = linear(%x, w@0) ...
//     %loss = softmax_cross_entropy(%y, ...)          %loss = softmax_cross_entropy(%y, ...)
//                                             ->      %d.loss = softmax_cross_entropy_grad(%y, ...)
//                                                     %d.w = linear_grad_weight(%d.loss, %x)
//                                                     w.grad@1 = add(w.grad@0, %d.w)
//
// Parameter gradients are added to the states <parameter>.grad, which `init` clears. Each forward node uses the recipe in its
// attribute `recipe`, or else the first of its op. Frozen parameters, and those the loss does not depend on, get no gradient. A
// value read twice gets the sum of its readers' gradients through `add` nodes; passes turn these into accumulation where a kernel
// can. Sections `forward` of several shapes become as many of each, which share the accumulators.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace snug {

// `batch`: examples per step, 0: as many as the model's microbatch. UserError when they are fewer.
Program differentiate(Program model, std::int64_t batch = 0);

}  // namespace snug
