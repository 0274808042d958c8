// Lets the kernel that makes a summand add it to the sum itself, where the backend's preferred
// kernel can; otherwise the summand stays a value of its own that liveness counts. Exact: such
// a kernel rounds its result before it adds. Under a workspace limit a parameter's new gradient
// counts as workspace; where it exceeds the limit, a different kernel may do the addition.
//
//   %dw = conv2d_grad_weight(%dy, %x)               ->   w.grad@1 = conv2d_grad_weight(%dy, %x, w.grad@0) {accumulate=1}
//   w.grad@1 = add(w.grad@0, %dw)
#pragma once

#include "passes/pass.h"

namespace snug {

Program accumulate_in_place(Program program, const PassContext& context);

}  // namespace snug
