// The reference backend: plain scalar kernels for every op, in f32 and f64, on the host. What a later backend computes must
// agree.
#pragma once

#include "ir/kernel.h"

namespace snug::backends {

// `threads`: at least 1. The bits of every result are the same for any number.
Backend reference_backend(int threads);

}  // namespace snug::backends
