// Moves a node into the one before it, when nothing else reads the value between them and the earlier op can absorb it
// (OpDef::absorbs): a ReLU into a batch norm. The bits stay the same; it saves a pass over memory and the value that the ReLU
// keeps for backward. Before differentiation: numerics are fixed here.
//
//   %n = batch_norm_apply(%x, ...)
//   %y = relu(%n)                        ->   %y = batch_norm_apply(%x, ...) {relu=1, ...}
#pragma once

#include "ir/program.h"

namespace snug {

Program fuse(Program model);

}  // namespace snug
