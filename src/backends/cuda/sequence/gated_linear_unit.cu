#include "backends/cuda/device_code.cuh"
#include "backends/cuda/pointwise/activations.cuh"
#include "backends/cuda/sequence/gated_linear_unit.h"

namespace snug::backends::cuda::launch {

namespace {

template <typename F, typename T, int V>
__global__ void __launch_bounds__(kThreads) unit_kernel(F /*tag*/, const T* x, T* y, std::uint32_t packs, std::uint32_t half) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::uint32_t vectors = half / V;
  const T* gate = x + std::size_t{pack / vectors} * 2 * half + pack % vectors * V;
  const Pack<T, V> gates = load<V>(gate);
  Pack<T, V> values = load<V>(gate + half);
#pragma unroll
  for (int v = 0; v < V; ++v) values.at[v] = narrow<T>(F::value(widen(gates.at[v])) * widen(values.at[v]));
  store<V>(y + std::size_t{pack} * V, values);
}

template <typename F, typename T, int V>
__global__ void __launch_bounds__(kThreads)
    grad_kernel(F /*tag*/, const T* dy, const T* x, T* dx, std::uint32_t packs, std::uint32_t half) {
  const std::uint32_t pack = blockIdx.x * kThreads + threadIdx.x;
  if (pack >= packs) return;
  const std::uint32_t vectors = half / V;
  const std::size_t at = std::size_t{pack / vectors} * 2 * half + pack % vectors * V;
  const Pack<T, V> gradients = load<V>(dy + std::size_t{pack} * V);
  Pack<T, V> gates = load<V>(x + at);
  Pack<T, V> values = load<V>(x + at + half);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const float gradient = widen(gradients.at[v]);
    const float gate = widen(gates.at[v]);
    gates.at[v] = narrow<T>(gradient * widen(values.at[v]) * F::slope(gate));
    values.at[v] = narrow<T>(gradient * F::value(gate));
  }
  store<V>(dx + at, gates);
  store<V>(dx + at + half, values);
}

// body(F{}) for the activation of values stored as T.
template <typename T, typename Body>
void with_activation(Gate activation, const Body& body) {
  switch (activation) {
    case Gate::sigmoid:
      return body(Sigmoid<MathFor<T>>{});
    case Gate::silu:
      return body(Silu<MathFor<T>>{});
    case Gate::gelu_by_tanh:
      return body(GeluByTanh<MathFor<T>>{});
  }
}

}  // namespace

template <typename T>
void gated_linear_unit(cudaStream_t stream, Gate activation, const T* x, T* y, std::uint32_t rows, std::uint32_t half) {
  with_activation<T>(activation, [&]<typename F>(F tag) {
    constexpr int V = kPack<T>;
    if (half % V == 0) {
      const std::uint32_t packs = rows * (half / V);
      unit_kernel<F, T, V><<<blocks_for(packs), kThreads, 0, stream>>>(tag, x, y, packs, half);
    } else {
      unit_kernel<F, T, 1><<<blocks_for(std::int64_t{rows} * half), kThreads, 0, stream>>>(tag, x, y, rows * half, half);
    }
  });
  check_launch("cuda_gated_linear_unit");
}

template <typename T>
void gated_linear_unit_grad(cudaStream_t stream, Gate activation, const T* dy, const T* x, T* dx, std::uint32_t rows,
                            std::uint32_t half) {
  with_activation<T>(activation, [&]<typename F>(F tag) {
    constexpr int V = kPack<T>;
    if (half % V == 0) {
      const std::uint32_t packs = rows * (half / V);
      grad_kernel<F, T, V><<<blocks_for(packs), kThreads, 0, stream>>>(tag, dy, x, dx, packs, half);
    } else {
      grad_kernel<F, T, 1><<<blocks_for(std::int64_t{rows} * half), kThreads, 0, stream>>>(tag, dy, x, dx, rows * half, half);
    }
  });
  check_launch("cuda_gated_linear_unit_grad");
}

#define SNUG_INSTANTIATE(T)                                                                        \
  template void gated_linear_unit(cudaStream_t, Gate, const T*, T*, std::uint32_t, std::uint32_t); \
  template void gated_linear_unit_grad(cudaStream_t, Gate, const T*, const T*, T*, std::uint32_t, std::uint32_t)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
