// The arenas in device and in host memory, and the runner that replays a section as one CUDA graph.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/device/device.h"
#include "ir/device.h"

namespace snug::backends::cuda {

// One cudaMalloc:
//   | scratch 256 B | front margin | arena: exactly `size` bytes | back margin |
// The margins (4 KiB in all before the arena, 4 KiB behind it) hold a pattern that nobody may change; the scratch takes the
// result of a scan for the high-water mark. For host memory, one cudaHostAlloc with the same margins and no scratch: its bytes
// are page-locked, and the host looks for the high-water mark. The device must outlive the arena.
std::unique_ptr<Arena> make_cuda_arena(CudaDevice& device, MemorySpace space, Bytes size);

// The first run launches the kernels one by one, so that libraries load what they need; the second records them into a CUDA
// graph, which it and all later runs launch.
std::unique_ptr<SectionRunner> make_cuda_runner(CudaDevice& device, std::vector<std::unique_ptr<BoundKernel>> kernels);

}  // namespace snug::backends::cuda
