#include "backends/cuda/norm/columns.cuh"
#include "backends/cuda/norm/sums.h"

namespace snug::backends::cuda::launch {

namespace {

template <typename T>
struct SumArguments {
  const T* x;
};

// Only the first of the two sums is used.
template <typename T, int V>
class RowTerms {
 public:
  using Arguments = SumArguments<T>;
  static constexpr int kVector = V;

  __device__ RowTerms(const Arguments& arguments, const RowShape& shape, std::uint32_t group, std::uint32_t channel)
      : x_(arguments.x + channel), channels_(shape.channels), rows_(examples_in_group(shape, group) * shape.pixels) {}
  __device__ std::uint32_t rows() const { return rows_; }
  __device__ void add(std::uint32_t row, float (&a)[V], float (&/*b*/)[V]) const {
    const Pack<T, V> pack = load<V>(x_ + std::size_t{row} * channels_);
#pragma unroll
    for (int v = 0; v < V; ++v) a[v] += widen(pack.at[v]);
  }

 private:
  const T* x_;
  std::uint32_t channels_, rows_;
};

template <typename T>
struct FinishSum {
  T* y;
  const T* addend;

  __device__ void operator()(std::uint32_t /*group*/, std::uint32_t channel, double a, double /*b*/) const {
    y[channel] = add_to(addend, channel, narrow<T>(static_cast<float>(a)));
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    sum_few_rows_kernel(const T* x, T* y, const T* addend, std::uint32_t rows, std::uint32_t channels) {
  const std::uint32_t channel = blockIdx.x * kThreads + threadIdx.x;
  if (channel >= channels) return;
  float sum = 0;
  for (std::uint32_t row = 0; row < rows; ++row) sum += widen(x[std::size_t{row} * channels + channel]);
  y[channel] = add_to(addend, channel, narrow<T>(sum));
}

template <typename T>
struct BiasArguments {
  T* y;
  const T* bias;
};

template <typename T, int V>
class AddBias {
 public:
  using Arguments = BiasArguments<T>;
  static constexpr int kVector = V;

  __device__ AddBias(const Arguments& arguments, const RowShape& shape, std::uint32_t /*group*/, std::uint32_t channel)
      : y_(arguments.y + channel), channels_(shape.channels), bias_(load<V>(arguments.bias + channel)) {}
  __device__ void operator()(std::uint32_t row) const {
    T* at = y_ + std::size_t{row} * channels_;
    Pack<T, V> pack = load<V>(at);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(widen(pack.at[v]) + widen(bias_.at[v]));
    store<V>(at, pack);
  }

 private:
  T* y_;
  std::uint32_t channels_;
  Pack<T, V> bias_;
};

}  // namespace

template <typename T>
void sum_to_channels(cudaStream_t stream, const T* x, T* y, const T* addend, const RowShape& shape, const ColumnSums& sums,
                     float* partial) {
  const SumArguments<T> arguments{x};
  const FinishSum<T> finish{y, addend};
  constexpr const char* kName = "cuda_sum_to_channels";
  if (sums.tiling.vector == 1) {
    launch_sums<RowTerms<T, 1>>(stream, arguments, finish, shape, sums, partial, kName);
  } else {
    launch_sums<RowTerms<T, kPack<T>>>(stream, arguments, finish, shape, sums, partial, kName);
  }
}

template <typename T>
void sum_few_rows(cudaStream_t stream, const T* x, T* y, const T* addend, std::uint32_t rows, std::uint32_t channels) {
  sum_few_rows_kernel<<<blocks_for(channels), kThreads, 0, stream>>>(x, y, addend, rows, channels);
  check_launch("cuda_sum_to_channels");
}

template <typename T>
void add_bias(cudaStream_t stream, T* y, const T* bias, const RowShape& shape, const ColumnTiling& tiling) {
  const BiasArguments<T> arguments{y, bias};
  if (tiling.vector == 1) {
    launch_map_rows<AddBias<T, 1>>(stream, arguments, shape, tiling, "add_bias");
  } else {
    launch_map_rows<AddBias<T, kPack<T>>>(stream, arguments, shape, tiling, "add_bias");
  }
}

template void sum_to_channels(cudaStream_t, const float*, float*, const float*, const RowShape&, const ColumnSums&, float*);
template void sum_to_channels(cudaStream_t, const __half*, __half*, const __half*, const RowShape&, const ColumnSums&, float*);
template void sum_to_channels(cudaStream_t, const __nv_bfloat16*, __nv_bfloat16*, const __nv_bfloat16*, const RowShape&,
                              const ColumnSums&, float*);
template void sum_few_rows(cudaStream_t, const float*, float*, const float*, std::uint32_t, std::uint32_t);
template void sum_few_rows(cudaStream_t, const __half*, __half*, const __half*, std::uint32_t, std::uint32_t);
template void sum_few_rows(cudaStream_t, const __nv_bfloat16*, __nv_bfloat16*, const __nv_bfloat16*, std::uint32_t,
                           std::uint32_t);
template void add_bias(cudaStream_t, float*, const float*, const RowShape&, const ColumnTiling&);
template void add_bias(cudaStream_t, __half*, const __half*, const RowShape&, const ColumnTiling&);
template void add_bias(cudaStream_t, __nv_bfloat16*, const __nv_bfloat16*, const RowShape&, const ColumnTiling&);

}  // namespace snug::backends::cuda::launch
