// Heavy-ball momentum without gradient accumulators: every microbatch adds its gradients to the momentum itself, which the first
// microbatch of a step decays beforehand, and the update only takes the step. Reassociated: the same sum, the momentum first
// instead of last.
//
//   section micro
//                                                          w.momentum@1 = momentum_decay(w.momentum@0, w@0, scalars@0)
//     %g = linear_grad_weight(%dy, x@0)               ->   %g = linear_grad_weight(%dy, x@0)
//     w.grad@1 = add(w.grad@0, %g)                         w.momentum@2 = add(w.momentum@1, %g)
//   section update
//     w@1, w.grad@1, w.momentum@1 = sgd(...)               w@1 = momentum_step(w@0, scalars@0, w.momentum@0)
//
// Where sgd rounds stochastically, so do all of these, and momentum_add takes the place of add: a microbatch's share of a
// momentum is too small for a bfloat16 that is rounded to nearest.
//
// A step whose loss is not finite leaves the weights as they were, but its gradients are in the momentum: training can only
// resume from a snapshot.
//
// UserError, by name: with clipping (the norm is of all gradients alone), with Nesterov (its step needs the gradient beside the
// momentum), with a momentum in 8 bits (rounded at every addition), without a momentum. A loss scale other than 1 is refused
// where it is set (train/session.h): what was added under one scale would be wrong under another.
#pragma once

#include "passes/pass.h"

namespace snug {

Program drop_gradients(Program program, const PassContext& context);

}  // namespace snug
