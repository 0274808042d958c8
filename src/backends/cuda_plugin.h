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
  bool allow_tf32 = false;  // products of f32 values with 10-bit fractions on tensor cores: faster, but less precise than f32
  bool use_graphs = true;   // false: every kernel is launched separately, for debuggers and profilers
  // The most scratch that a library's kernel takes where it has a choice.
  Bytes workspace_limit = Bytes(16 << 20);
};

// UserError when there is no plugin, it was built from other sources, or there is no device.
Backend load_cuda_backend(const CudaOptions& options = {});

}  // namespace snug::backends
