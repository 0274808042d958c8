// RAII owners of CUDA handles. Their destructors ignore the driver's errors: at the end of a
// process it may already be unloaded.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

#include "backends/cuda/device/check.h"

namespace snug::backends::cuda {

// Handle types are pointers; `Release` frees one.
template <typename Handle, auto Release>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (handle_ != nullptr) static_cast<void>(Release(handle_));
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Event = Owner<cudaEvent_t, cudaEventDestroy>;
using Graph = Owner<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;
using DeviceMemory = Owner<void*, cudaFree>;
using PinnedMemory = Owner<void*, cudaFreeHost>;

inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  SNUG_CUDA_CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

inline Event make_event() {
  cudaEvent_t event = nullptr;
  SNUG_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

inline PinnedMemory make_pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  SNUG_CUDA_CALL(cudaMallocHost(&memory, bytes));
  return PinnedMemory(memory);
}

}  // namespace snug::backends::cuda
