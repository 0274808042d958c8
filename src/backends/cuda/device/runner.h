// The arenas in device and in host memory, and the runner that replays a section as one CUDA graph.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/device/device.h"
#include "ir/device.h"

namespace snug::backends::cuda {

// One cudaMalloc:
//   | scratch 256 B | front margin | arena: exactly `size` bytes | back margin |
// The margins (4 KiB including the scratch before the arena, 4 KiB after it) hold a pattern that must not change; the scratch
// holds the result of a scan for the high-water mark. For host memory, one cudaHostAlloc with the same margins and no scratch:
// its bytes are page-locked, and the host scans for the high-water mark. The device must outlive the arena.
std::unique_ptr<Arena> make_cuda_arena(CudaDevice& device, MemorySpace space, Bytes size);

// The first run launches the kernels one by one, so that libraries load what they need; the second captures them in a CUDA graph,
// which it and all later runs launch.
std::unique_ptr<SectionRunner> make_cuda_runner(CudaDevice& device, std::vector<std::unique_ptr<BoundKernel>> kernels);

}  // namespace snug::backends::cuda
