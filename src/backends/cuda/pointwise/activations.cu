#include "backends/cuda/pointwise/activations.cuh"
#include "backends/cuda/pointwise/activations.h"
#include "backends/cuda/pointwise/maps.cuh"

namespace snug::backends::cuda::launch {

namespace {

template <typename F>
struct Value {
  __device__ float operator()(float x) const { return F::value(x); }
};

template <typename F>
struct Gradient {
  __device__ float operator()(float dy, float x) const { return dy * F::slope(x); }
};

// body(F{}) for the activation of values stored as T.
template <typename T, typename Body>
void with_activation(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::gelu:
      return body(Gelu<MathFor<T>>{});
    case Activation::gelu_by_tanh:
      return body(GeluByTanh<MathFor<T>>{});
    case Activation::silu:
      return body(Silu<MathFor<T>>{});
  }
}

}  // namespace

template <typename T>
void activation(cudaStream_t stream, Activation kind, const T* x, T* y, std::int64_t count) {
  with_activation<T>(kind, [&]<typename F>(F /*tag*/) {
    map_one<<<pack_blocks<T>(count), kThreads, 0, stream>>>(Value<F>{}, x, y, static_cast<std::uint32_t>(count));
  });
  check_launch("cuda_activation");
}

template <typename T>
void activation_grad(cudaStream_t stream, Activation kind, const T* dy, const T* x, T* dx, const T* addend, std::int64_t count) {
  with_activation<T>(kind, [&]<typename F>(F /*tag*/) {
    map_two<<<pack_blocks<T>(count), kThreads, 0, stream>>>(Gradient<F>{}, dy, x, dx, addend, static_cast<std::uint32_t>(count));
  });
  check_launch("cuda_activation_grad");
}

#define SNUG_INSTANTIATE(T)                                                       \
  template void activation(cudaStream_t, Activation, const T*, T*, std::int64_t); \
  template void activation_grad(cudaStream_t, Activation, const T*, const T*, T*, const T*, std::int64_t)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
