// The CUDA backend lies in a plugin, libsnug_cuda.so, that is loaded when a run asks for it: a CPU run pays for neither the
// driver nor NVIDIA's libraries.
#pragma once

#include <string>

#include "base/bytes.h"
#include "ir/kernel.h"

namespace snug::backends {

struct CudaOptions {
  // Where the plugin is; empty: $SNUG_CUDA_PLUGIN, then beside the program, in ../ and ../lib of it, then the system's paths.
  std::string plugin = {};
  int device = 0;
  bool allow_tf32 = false;  // products of f32 values with 10-bit fractions on tensor cores: faster, and not f32 any more
  bool use_graphs = true;   // false: every kernel is launched by itself, for debuggers and profilers
  // A library's kernel takes at most this much scratch where it has a choice.
  Bytes workspace_limit = Bytes(16 << 20);
};

// UserError when there is no plugin, it was built from other sources, or no device answers.
Backend load_cuda_backend(const CudaOptions& options = {});

}  // namespace snug::backends
