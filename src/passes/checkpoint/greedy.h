// Checkpointing strategy `greedy`: Dynamic Tensor Rematerialization's rule (Kirisame et al., ICLR 2021) run as a planner. It
// needs no chain of blocks, so it is for any graph.
//
// The section's list is gone through in order with the limit in hand. Where the next node's results would go beyond it, the
// forward value goes that has the least
//
//     cost / (bytes x rest)
//
// with the cost of making it again and, with it, what is gone of that it is made from and of what is made from it (the paper's
// e*). For the rest the paper, which plans while the network runs, takes how long the value was not read, as a guess how long it
// will not be; here the list is known, and the rest is the seconds until a node reads the value or something gone that is made
// from it. On WRN-28-2 that takes a sixth to a third less recomputation. A value that is gone is made again, with what it takes,
// before the node that reads it. With a limit of two values:
//
//   %a = linear(x@0, w@0)                     ->   %a = linear(x@0, w@0)
//   %b = linear(%a, w@0)                           %b = linear(%a, w@0)
//   %c = linear(%b, w@0)                           %c = linear(%b, w@0)                            ; %a goes
//   w.grad@1 = linear_grad_weight(%c, %b)          w.grad@1 = linear_grad_weight(%c, %b)
//                                                  %a.again = linear(x@0, w@0)                     ; recompute
//   b.grad@1 = sum_to_channels(%a)                 b.grad@1 = sum_to_channels(%a.again)
//
// Best effort: where the limit cannot be kept, the least one that can is taken in its place. Never gone are gradients (one is
// made from all behind it), what may not be cloned, what is far smaller than what it is made from, and values that were made
// again very often already; so the list that comes out has at most a fixed multiple of the nodes that went in.
#pragma once

#include "passes/pass.h"

namespace snug {

// context.methods.checkpoint->limit is for the transient values of the section together, with what kernels ask for as workspace
// and with outputs in the bytes of inputs that die; what placement loses between buffers comes on top. Without a limit nothing
// changes.
void drop_greedily(Section& section, const PassContext& context);

}  // namespace snug
