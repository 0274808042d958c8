#include "driver_bytes/calls.h"

namespace snug::driver_bytes {

namespace {

constexpr int kStackBytes = 4096;

__global__ void empty() {}

// Indices that only the run knows keep the array out of registers.
__global__ void with_stack(int* result, int step) {
  volatile char bytes[kStackBytes];
  for (int i = 0; i < kStackBytes; i += step) bytes[i] = static_cast<char>(i);
  if (result != nullptr) *result = bytes[step];
}

}  // namespace

void launch_empty(cudaStream_t stream) {
  empty<<<1, 1, 0, stream>>>();
  check(cudaGetLastError(), "the empty kernel");
}

void launch_with_stack(cudaStream_t stream) {
  with_stack<<<1, 32, 0, stream>>>(nullptr, 7);
  check(cudaGetLastError(), "the kernel with a stack");
}

}  // namespace snug::driver_bytes
