// Every CUDA call is checked, and the failing one named. No formatting library here: the CUDA compiler reads this header too.
#pragma once

#include <cuda_runtime_api.h>

namespace snug::backends::cuda {

// InternalError "<call> failed: <the driver's message>" unless `status` is success. Also clears CUDA's last error.
void check(cudaError_t status, const char* call);

// After a launch: a bad configuration is detected at once, a failing kernel at the next call that waits.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace snug::backends::cuda

#define SNUG_CUDA_CALL(call) ::snug::backends::cuda::check((call), #call)
