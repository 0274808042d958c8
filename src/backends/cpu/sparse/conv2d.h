// Convolutions with weights of the sparse store.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cpu {

// What a weight gradient begins with: the sum that it adds to, brought over where it lies elsewhere, or zeros.
std::unique_ptr<BoundKernel> begin_gradient(const KernelArguments& arguments);

}  // namespace snug::backends::cpu
