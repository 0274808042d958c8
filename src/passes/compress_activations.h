// Activation compression: a large forward value that waits for backward is packed into few bits per element after its last
// forward use, and unpacked once, before its first use after forward. Only the packed form lives in between.
//
//   %y = linear(%x, w@0)                        ->   %y = linear(%x, w@0)
//                                                    %x.codes, %x.ranges = pack(%x, scalars@0) {bits=4, key=0}
//   ...                                              ...
//                                                    %x.unpacked = unpack(%x.codes, %x.ranges) {...}         ; recompute
//   %dw = linear_grad_weight(%dy, %x)                %dw = linear_grad_weight(%dy, %x.unpacked)
//
// Lossy (rung `compressed`): gradients are computed from values that are right on average and off by less than a step of their
// group (ops/pack.cpp). The forward pass stays exact, and so do sign bits, an argmax, statistics, images, which are recomputed
// from their bytes, and whatever backward needs exactly (OpDef::exact_inputs): of a ReLU's output that is packed, backward reads
// one exact bit per element instead. Under checkpointing the values that are kept are packed, and clones start from the unpacked
// values.
//
// Where the last forward use may work in place, packing comes before it, so that it still can.
#pragma once

#include "passes/pass.h"

namespace snug {

// context.methods.compress_bits per element: 8, 4 or 2; UserError otherwise.
Program compress_activations(Program program, const PassContext& context);

}  // namespace snug
