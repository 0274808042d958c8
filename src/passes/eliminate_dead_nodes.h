// Drops nodes whose outputs nothing reads and that write no state. Exact.
//
//   %plain = image_input(images@0, scalars@0)
//   %input = image_input(images@0, scalars@0)          ->   %input = image_input(images@0, scalars@0)
//   %c = conv2d(%input, w@0)                                %c = conv2d(%input, w@0)
#pragma once

#include "passes/pass.h"

namespace snug {

Program eliminate_dead_nodes(Program program, const PassContext& context);

}  // namespace snug
