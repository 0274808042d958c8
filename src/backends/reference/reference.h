// The reference backend: plain scalar kernels for every op, in f32 and f64, on the host. Other
// backends must agree with it.
#pragma once

#include "ir/kernel.h"

namespace snug::backends {

// `threads`: at least 1. Results are bit-identical for any number.
Backend reference_backend(int threads);

}  // namespace snug::backends
