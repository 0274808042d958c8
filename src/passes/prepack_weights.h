// Keeps the weights of data gradients a second time, in the layout that their kernels read, instead of copying them into the
// workspace at every run: with microbatches, once per update instead of once per microbatch. It costs a copy of the weights in
// the persistent region and saves the workspace of the copy, so it runs only on request. Exact.
//
//   section micro
//     %dx = conv2d_grad_input(%dy, w@0)                   ->   %dx = conv2d_grad_input(%dy, w.packed@0)
//   section update
//     w@1, ... = sgd(w@0, ...)                            ->   w@1, ... = sgd(w@0, ...)
//                                                              w.packed@1 = relayout(w@1)
//   section derive                                             w.packed@1 = relayout(w@0)
//
// Every section that writes the weight (init, update) renews the copy after its last write.
// After a weight is written from outside, the section `derive` runs and renews all copies.
// Copies have the role `workspace`, so they are not saved and not counted as parameters. A
// weight that `micro` itself writes has no copy: it would have to be made at every run anyway.
#pragma once

#include "passes/pass.h"

namespace snug {

Program prepack_weights(Program program, const PassContext& context);

}  // namespace snug
