// Convolution by oneDNN.
#pragma once

#include <optional>

#include "ir/kernel.h"

namespace snug::backends::cpu {

// For a forward convolution, the layout of oneDNN's weight gradient, when the forward pass can read it too: then neither needs a
// copy. For a data gradient, the one that it reads without a copy.
std::optional<Layout> preferred_conv2d_weight_layout(const KernelQuery& query);

}  // namespace snug::backends::cpu
