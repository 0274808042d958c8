// Gives every node the backend's preferred kernel and books its workspace as a value that lives while the node runs. Exact.
//
//   %y = conv2d(%x, w@0)    ->   %y = conv2d(%x, w@0) using onednn_conv2d workspace %y.workspace u8[4096]
#pragma once

#include "passes/pass.h"

namespace snug {

// UserError when the backend has no kernel for a node; the message gives every kernel's reason.
Program select_kernels(Program program, const PassContext& context);

}  // namespace snug
