// Keeps the weights of data gradients a second time, in the layout that their kernels read, instead of copying them into the
// workspace at every run: with microbatches, once an update instead of once a microbatch. It costs a copy of the weights in the
// persistent region and saves the workspace of the copy, so it runs only on request. Exact.
//
//   section micro
//     %dx = conv2d_grad_input(%dy, w@0)                   ->   %dx = conv2d_grad_input(%dy, w.packed@0)
//   section update
//     w@1, ... = sgd(w@0, ...)                            ->   w@1, ... = sgd(w@0, ...)
//                                                              w.packed@1 = relayout(w@1)
//   section derive                                             w.packed@1 = relayout(w@0)
//
// Every section that writes the weight (init, update) makes the copy again behind its last write. A weight that is written from
// outside is followed by a run of the section `derive`, which makes all copies again; copies have the role `workspace`, so that
// nobody saves them or counts them as parameters. A weight that `micro` itself writes is left as it is: there the copy would be
// made at every run all the same.
#pragma once

#include "passes/pass.h"

namespace snug {

Program prepack_weights(Program program, const PassContext& context);

}  // namespace snug
