// Gives every node the backend's preferred kernel and books its workspace as a value that lives while the node runs. Exact.
//
//   %y = conv2d(%x, w@0)    ->   %y = conv2d(%x, w@0) using onednn_conv2d workspace %y.workspace u8[4096]
#pragma once

#include "passes/pass.h"
#include <snug/error.h>

namespace snug {

// A workspace limit leaves nodes of a program without kernels; with a limit of `least` every node has one.
class WorkspaceTooSmall : public UserError {
 public:
  // `node` is the one that needs that much, for the message.
  WorkspaceTooSmall(Bytes limit, Bytes least, const std::string& node);
  Bytes least() const { return least_; }
  const std::string& node() const { return node_; }

 private:
  Bytes least_;
  std::string node_;
};

// UserError when the backend has no kernel for a node; the message gives every kernel's reason. WorkspaceTooSmall when it has
// none within its workspace_limit alone.
Program select_kernels(Program program, const PassContext& context);

}  // namespace snug
