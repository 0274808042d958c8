// What the program and its CUDA plugin must agree on. Both include this header, each with its own compiler flags and sources.
#pragma once

#include <string>

#include <fmt/format.h>

#include "backends/cuda_plugin.h"
#include "ir/device.h"
#include "ir/kernel.h"
#include "ir/scalars.h"

namespace snug::backends {

// Increased when the meaning of something below changes but not its size, or a virtual function is added.
inline constexpr int kCudaPluginAbi = 3;

// C++ objects cross the border, so both sides must come from the same compiler and the same declarations.
inline std::string cuda_plugin_fingerprint() {
  return fmt::format("abi {}, compiler {}, sizes {}/{}/{}/{}/{}/{}/{}", kCudaPluginAbi, __VERSION__, sizeof(Backend),
                     sizeof(KernelDef), sizeof(KernelQuery), sizeof(KernelArguments), sizeof(Type), sizeof(Scalars),
                     sizeof(CudaOptions));
}

// The plugin's two symbols. `open` throws like any function of Snug; `result` is filled in place.
inline constexpr const char* kCudaFingerprintSymbol = "snug_cuda_fingerprint";
inline constexpr const char* kCudaOpenSymbol = "snug_cuda_open";
using CudaFingerprintFunction = const char* (*)();
using CudaOpenFunction = void (*)(const CudaOptions& options, Backend& result);

}  // namespace snug::backends
