// Offloading: a large forward value that waits for backward does so in host memory. It is copied there right behind its last
// forward use, and back right before its first use behind forward; the nodes behind forward read what came back. Exact: the same
// bytes.
//
//   %y = linear(%x, w@0)                        ->   %y = linear(%x, w@0)
//                                                    %x.host = copy_to_space(%x) {host=1}          ; forward, in host memory
//   ...                                              ...
//                                                    %x.back = copy_to_space(%x.host) {host=0}     ; backward
//   %dw = linear_grad_weight(%dy, %x)                %dw = linear_grad_weight(%dy, %x.back)
//
// The device keeps of such a value only what forward and backward work on at the time, and the host arena all of it. Under
// checkpointing what stays is what is copied, and clones start from what came back; of a value kept in few bits it is the codes.
// Both copies stand in the list like any other node, so a step takes longer by what they take.
#pragma once

#include "passes/pass.h"

namespace snug {

Program offload_activations(Program program, const PassContext& context);

}  // namespace snug
