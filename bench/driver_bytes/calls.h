// The single things that may make a driver take memory. Each throws std::runtime_error with the call that failed.
#pragma once

#include <cuda_runtime_api.h>

namespace snug::driver_bytes {

void check(cudaError_t status, const char* call);

void launch_empty(cudaStream_t stream);
// Every thread has a stack of 4 KiB, known to the compiler.
void launch_with_stack(cudaStream_t stream);

// A handle, a product of 128 x 128 matrices of f16 or f32 without workspace, and the handle given back. `after` gets the name of
// what has just been done.
using After = void (*)(void* context, const char* what);
struct Listener {
  After after;
  void* context;
  void operator()(const char* what) const { after(context, what); }
};
void use_cublaslt(Listener listener);
// As PyTorch does it: cuBLAS with its own workspace. Found when it is called; nothing happens where it is missing.
void use_cublas(Listener listener);
// The same for a convolution of f16 without workspace.
void use_cudnn(Listener listener);

}  // namespace snug::driver_bytes
