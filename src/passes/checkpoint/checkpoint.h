// Gradient checkpointing: values that backward reads and the strategy does not keep are dropped after their last forward use, and
// the nodes that make them run again (phase `recompute`) just before backward needs them. Exact: a clone has the op, constants,
// random keys and operands of its original, and so gives the same bits.
//
//   %a = linear(x@0, w@0)                     ->   %a = linear(x@0, w@0)
//   %b = linear(%a, w@0)                           %b = linear(%a, w@0)
//   %c = linear(%b, w@0)                           %c = linear(%b, w@0)
//   ...                                            ...
//   %db = linear_grad_weight(%dc, %b)              %db = linear_grad_weight(%dc, %b)
//                                                  %a.again = linear(x@0, w@0)                      ; recompute
//   %da = linear_grad_weight(%db, %a)              %da = linear_grad_weight(%db, %a.again)
//
// Recomputation goes by regions (regions.h): when backward first reads a value of a region, the values of the region that
// backward or regions inside it will read are recomputed, from values that exist then. Values that lead out of a region are kept
// with the region around it, so any graph is correct under any strategy. Besides:
//   - Nodes that write states (running statistics, metrics) run once, and so does what reads a state that the section writes
//     later: those values stay.
//   - Statistics and other values far smaller than what they are made from stay.
//   - Values made cheaply from states alone, such as images from their bytes, never stay, and with no-bn and residual-M* neither
//     do results of normalization: each comes back where backward reads it.
#pragma once

#include "passes/pass.h"

namespace snug {

// context.methods.checkpoint says how; `none` changes nothing.
Program checkpoint(Program program, const PassContext& context);

}  // namespace snug
