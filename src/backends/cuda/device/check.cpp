#include "backends/cuda/device/check.h"

#include "base/error.h"

namespace snug::backends::cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  throw InternalError(fmt::format("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace snug::backends::cuda
