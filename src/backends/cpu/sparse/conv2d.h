// Convolutions with weights of the sparse store.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cpu {

// Initializes a weight gradient: with the sum that it adds to, copied if it lies elsewhere, or with zeros.
std::unique_ptr<BoundKernel> begin_gradient(const KernelArguments& arguments);

}  // namespace snug::backends::cpu
