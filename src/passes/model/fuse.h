// Moves a node into the one before it, when nothing else reads what lies between and the op before it can (OpDef::absorbs): a
// ReLU into a batch norm. The bits stay the same; a pass over memory and, in backward, the ReLU's kept value go. Before
// differentiation: numerics are fixed here.
//
//   %n = batch_norm_apply(%x, ...)
//   %y = relu(%n)                        ->   %y = batch_norm_apply(%x, ...) {relu=1, ...}
#pragma once

#include "ir/program.h"

namespace snug {

Program fuse(Program model);

}  // namespace snug
