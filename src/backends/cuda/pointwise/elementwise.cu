#include "backends/cuda/pointwise/elementwise.h"
#include "backends/cuda/pointwise/maps.cuh"

namespace snug::backends::cuda::launch {

namespace {

// Zero and below give +0; NaN passes through, so that an overflow stays visible.
struct Relu {
  template <typename A>
  __device__ A operator()(A x) const {
    return x <= 0 ? A{0} : x;
  }
};

struct ReluGrad {
  __device__ float operator()(float dy, float y) const { return y > 0 ? dy : 0.0F; }
};

struct Add {
  template <typename A>
  __device__ A operator()(A a, A b) const {
    return a + b;
  }
};

constexpr std::uint32_t kBits = 8;  // elements per thread, which share a byte

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relu_grad_bits_kernel(const T* dy, const std::uint8_t* bits, T* dx, const T* addend, std::uint32_t count) {
  const std::uint32_t byte = blockIdx.x * kThreads + threadIdx.x;
  const std::uint32_t first = byte * kBits;
  if (first >= count) return;
  const unsigned mask = bits[byte];
  if (first + kBits <= count) {
    Pack<T, kBits> pack = load<kBits>(dy + first);
#pragma unroll
    for (int v = 0; v < static_cast<int>(kBits); ++v) pack.at[v] = ((mask >> v) & 1U) != 0 ? pack.at[v] : narrow<T>(0.0F);
    store_sum<kBits>(dx, addend, first, pack);
  } else {
    for (std::uint32_t i = first; i < count; ++i) {
      dx[i] = add_to(addend, i, ((mask >> (i - first)) & 1U) != 0 ? dy[i] : narrow<T>(0.0F));
    }
  }
}

// The bits after the last element are 0.
template <typename T>
__global__ void __launch_bounds__(kThreads) sign_bits_kernel(const T* y, std::uint8_t* bits, std::uint32_t count) {
  const std::uint32_t byte = blockIdx.x * kThreads + threadIdx.x;
  const std::uint32_t first = byte * kBits;
  if (first >= count) return;
  unsigned packed = 0;
  if (first + kBits <= count) {
    const Pack<T, kBits> pack = load<kBits>(y + first);
#pragma unroll
    for (int v = 0; v < static_cast<int>(kBits); ++v) packed |= (widen(pack.at[v]) > 0 ? 1U : 0U) << v;
  } else {
    for (std::uint32_t i = first; i < count; ++i) packed |= (widen(y[i]) > 0 ? 1U : 0U) << (i - first);
  }
  bits[byte] = static_cast<std::uint8_t>(packed);
}

}  // namespace

template <typename T>
void relu(cudaStream_t stream, const T* x, T* y, std::int64_t count) {
  map_one<<<pack_blocks<T>(count), kThreads, 0, stream>>>(Relu{}, x, y, static_cast<std::uint32_t>(count));
  check_launch("cuda_relu");
}

template <typename T>
void relu_grad(cudaStream_t stream, const T* dy, const T* y, T* dx, const T* addend, std::int64_t count) {
  map_two<<<pack_blocks<T>(count), kThreads, 0, stream>>>(ReluGrad{}, dy, y, dx, addend, static_cast<std::uint32_t>(count));
  check_launch("cuda_relu_grad");
}

template <typename T>
void relu_grad_bits(cudaStream_t stream, const T* dy, const std::uint8_t* bits, T* dx, const T* addend, std::int64_t count) {
  relu_grad_bits_kernel<<<blocks_for(count, kThreads * kBits), kThreads, 0, stream>>>(dy, bits, dx, addend,
                                                                                      static_cast<std::uint32_t>(count));
  check_launch("cuda_relu_grad_bits");
}

template <typename T>
void sign_bits(cudaStream_t stream, const T* y, std::uint8_t* bits, std::int64_t count) {
  sign_bits_kernel<<<blocks_for(count, kThreads * kBits), kThreads, 0, stream>>>(y, bits, static_cast<std::uint32_t>(count));
  check_launch("cuda_sign_bits");
}

template <typename T>
void add(cudaStream_t stream, const T* a, const T* b, T* y, std::int64_t count) {
  map_two<<<pack_blocks<T>(count), kThreads, 0, stream>>>(Add{}, a, b, y, static_cast<const T*>(nullptr),
                                                          static_cast<std::uint32_t>(count));
  check_launch("cuda_add");
}

template void relu(cudaStream_t, const float*, float*, std::int64_t);
template void relu(cudaStream_t, const __half*, __half*, std::int64_t);
template void relu(cudaStream_t, const __nv_bfloat16*, __nv_bfloat16*, std::int64_t);
template void relu_grad(cudaStream_t, const float*, const float*, float*, const float*, std::int64_t);
template void relu_grad(cudaStream_t, const __half*, const __half*, __half*, const __half*, std::int64_t);
template void relu_grad(cudaStream_t, const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, const __nv_bfloat16*,
                        std::int64_t);
template void relu_grad_bits(cudaStream_t, const float*, const std::uint8_t*, float*, const float*, std::int64_t);
template void relu_grad_bits(cudaStream_t, const __half*, const std::uint8_t*, __half*, const __half*, std::int64_t);
template void relu_grad_bits(cudaStream_t, const __nv_bfloat16*, const std::uint8_t*, __nv_bfloat16*, const __nv_bfloat16*,
                             std::int64_t);
template void sign_bits(cudaStream_t, const float*, std::uint8_t*, std::int64_t);
template void sign_bits(cudaStream_t, const __half*, std::uint8_t*, std::int64_t);
template void sign_bits(cudaStream_t, const __nv_bfloat16*, std::uint8_t*, std::int64_t);
template void add(cudaStream_t, const float*, const float*, float*, std::int64_t);
template void add(cudaStream_t, const __half*, const __half*, __half*, std::int64_t);
template void add(cudaStream_t, const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, std::int64_t);
template void add(cudaStream_t, const double*, const double*, double*, std::int64_t);

}  // namespace snug::backends::cuda::launch
