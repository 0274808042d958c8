// The CPU at full speed: oneDNN for convolutions and matrix products, our own vectorized kernels for the rest, the reference
// last.
#pragma once

#include "ir/kernel.h"

namespace snug::backends {

Backend cpu_backend(int threads);

}  // namespace snug::backends
