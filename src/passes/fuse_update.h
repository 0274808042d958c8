// Moves each parameter's update into backward, right after the last reader of the old weight and the last part of the gradient.
// The gradient becomes an ordinary value that dies there, and its accumulator, a state of the parameter's size, disappears.
// Exact: a gradient has the bits of an accumulator that started at zero (ops/updates/sgd.cpp says why -0 does not matter), and
// the update has those of `update`. Where a workspace limit would have made the accumulation choose another kernel, that kernel
// is not needed.
//
//   section micro
//     %g = linear_grad_weight(%dy, x@0)              ->   %g = linear_grad_weight(%dy, x@0)
//     w.grad@1 = add(w.grad@0, %g)
//     %dx = linear_grad_input(%dy, w@0)                   %dx = linear_grad_input(%dy, w@0)
//                                                         %guard = finite_factor(metrics@1)
//                                                         w@1, %w.gradient = sgd(w@0, %g, scalars@0, %guard)
//   section update
//     w@1, w.grad@1 = sgd(w@0, w.grad@0, scalars@0)       (empty)
//
// A step whose loss is not finite must leave the weights as they were, and at this point the host has not seen the loss yet. The
// program has: the metrics are complete when forward ends, and from them `finite_factor` computes a factor by which every update
// skips itself.
//
// UserError, by name, where a gradient is needed as a whole before the first update: with several microbatches per step, and with
// clipping by the norm of all gradients. Runs after `checkpoint`, whose clones read old weights, and only on request.
#pragma once

#include "passes/pass.h"

namespace snug {

Program fuse_update(Program program, const PassContext& context);

}  // namespace snug
