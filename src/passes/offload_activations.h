// Offloading: a large forward value waits for backward in host memory. It is
// copied there right after its last forward use, and back right before its first
// use after forward; the nodes after forward read the copy. Exact: the same bytes.
//
//   %y = linear(%x, w@0)                        ->   %y = linear(%x, w@0)
//                                                    %x.host = copy_to_space(%x) {host=1}          ; forward, in host memory
//   ...                                              ...
//                                                    %x.back = copy_to_space(%x.host) {host=0}     ; backward
//   %dw = linear_grad_weight(%dy, %x)                %dw = linear_grad_weight(%dy, %x.back)
//
// The device holds such a value only while forward or backward uses it; the host arena holds it in between. Under checkpointing
// the values that are kept are copied, and clones start from what came back; of a packed value the codes are copied. Both
// copies are ordinary nodes, so a step takes longer by the time that they take.
#pragma once

#include "passes/pass.h"

namespace snug {

Program offload_activations(Program program, const PassContext& context);

}  // namespace snug
