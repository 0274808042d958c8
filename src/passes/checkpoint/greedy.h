// Checkpointing strategy `greedy`: Dynamic Tensor Rematerialization's rule (Kirisame et al., ICLR 2021) run as a planner. It
// needs no chain of blocks, so it is for any graph.
//
// The planner walks the section's list in order. Where the next node's results would exceed the limit, it drops the forward value
// with the smallest
//
//     cost / (bytes x rest)
//
// where `cost` is the time to recompute it together with the dropped values that it is made from or that are made from it (the
// paper's e*). For `rest` the paper, which plans while the network runs, takes the time since the value was last read as an
// estimate; here the list is known, and `rest` is the seconds until a node reads the value or a dropped one that is made from it.
// On WRN-28-2 that saves a sixth to a third of the recomputation. A dropped value is recomputed, with what that needs, before the
// node that reads it. With a limit of two values:
//
//   %a = linear(x@0, w@0)                     ->   %a = linear(x@0, w@0)
//   %b = linear(%a, w@0)                           %b = linear(%a, w@0)
//   %c = linear(%b, w@0)                           %c = linear(%b, w@0)                            ; %a goes
//   w.grad@1 = linear_grad_weight(%c, %b)          w.grad@1 = linear_grad_weight(%c, %b)
//                                                  %a.again = linear(x@0, w@0)                     ; recompute
//   b.grad@1 = sum_to_channels(%a)                 b.grad@1 = sum_to_channels(%a.again)
//
// Best effort: where the limit cannot be kept, the smallest one that can is used instead. Never dropped are gradients (each is
// made from all later ones), what may not be cloned, what is far smaller than what it is made from, and values that were
// recomputed very often already; so the resulting list has at most a fixed multiple of the original number of nodes.
#pragma once

#include "passes/pass.h"

namespace snug {

// context.methods.checkpoint->limit is for all transient values of the section, including
// workspaces and counting in-place outputs once; gaps between buffers come on top. Without a limit
// nothing changes.
void drop_greedily(Section& section, const PassContext& context);

}  // namespace snug
