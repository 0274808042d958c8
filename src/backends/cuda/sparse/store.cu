#include <algorithm>

#include "backends/cuda/sparse/code.cuh"
#include "backends/cuda/sparse/store.h"
#include "ops/random_draws.h"

namespace snug::backends::cuda::launch {

namespace {

// Most tensors of one launch.
constexpr std::size_t kMostTensors = 64;
struct PatternTensors {
  PatternTensor at[kMostTensors];
};

// One block per tensor. Whether a place is taken depends on how many are still wanted, so one thread decides, place by place; all
// threads share the precomputation and the writing.
__global__ void __launch_bounds__(kWalkers)
    pattern_kernel(PatternTensors tensors, const Scalars* scalars, int bits, std::uint32_t* columns, std::int32_t* rows) {
  __shared__ double limit[kWalkers];  // the place is taken when more than this are wanted: ops::takes_place
  __shared__ bool taken[kWalkers];
  __shared__ unsigned counts[kWalkers / 32];
  const PatternTensor& tensor = tensors.at[blockIdx.x];
  const std::uint64_t seed = scalars->seed;
  const std::uint32_t elements = tensor.rows * tensor.columns;
  double wanted = tensor.nonzeros;
  std::uint32_t value = tensor.first_value;
  for (std::uint32_t base = 0; base < elements; base += kWalkers) {
    const std::uint32_t place = base + threadIdx.x;
    const bool valid = place < elements;
    if (valid) {
      const std::uint32_t word = ops::pattern_word(seed, tensor.first_place + place);
      limit[threadIdx.x] = uniform_unit(word) * static_cast<double>(elements - place);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const std::uint32_t count = min(kWalkers, elements - base);
      for (std::uint32_t i = 0; i < count; ++i) {
        const bool takes = limit[i] < wanted;
        taken[i] = takes;
        wanted -= takes ? 1.0 : 0.0;
      }
    }
    __syncthreads();
    unsigned total = 0;
    const bool mine = valid && taken[threadIdx.x];
    const std::uint32_t at = value + rank_in_block(mine, counts, total);
    if (valid && place % tensor.columns == 0) rows[tensor.first_row + place / tensor.columns] = static_cast<std::int32_t>(at);
    if (mine) put_column(columns, bits, at, place % tensor.columns);
    value += total;
    __syncthreads();
  }
  // The next tensor's first row too, which says the same.
  if (threadIdx.x == 0) rows[tensor.first_row + tensor.rows] = static_cast<std::int32_t>(value);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    values_kernel(SparsePattern pattern, InitialValues initial, const Scalars* scalars, T* values) {
  const std::uint32_t row = blockIdx.x;
  const std::uint64_t seed = scalars->seed;
  for (std::int32_t k = pattern.rows[row] + static_cast<int>(threadIdx.x); k < pattern.rows[row + 1]; k += kThreads) {
    const std::uint32_t column = column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(k));
    // The row-major element of the dense tensor.
    const std::uint64_t element =
        (std::uint64_t{row} * initial.channels + column % initial.channels) * initial.taps + column / initial.channels;
    const double draw =
        initial.uniform ? ops::draw_init_uniform(seed, initial.key, element) : ops::draw_init_normal(seed, initial.key, element);
    values[k] = narrow<T>(initial.spread * draw);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) expand_kernel(SparsePattern pattern, const T* values, T* dense) {
  T* row = dense + std::size_t{blockIdx.x} * pattern.column_count;
  for (int i = static_cast<int>(threadIdx.x); i < pattern.column_count; i += kThreads) row[i] = narrow<T>(0.0F);
  __syncthreads();
  const std::int32_t end = pattern.rows[blockIdx.x + 1];
  for (std::int32_t k = pattern.rows[blockIdx.x] + static_cast<int>(threadIdx.x); k < end; k += kThreads)
    row[column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(k))] = values[k];
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gather_gradient_kernel(SparsePattern pattern, const T* dense, T* gradient) {
  const T* row = dense + std::size_t{blockIdx.x} * pattern.column_count;
  const std::int32_t end = pattern.rows[blockIdx.x + 1];
  for (std::int32_t k = pattern.rows[blockIdx.x] + static_cast<int>(threadIdx.x); k < end; k += kThreads)
    gradient[k] = add_to(gradient, k, row[column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(k))]);
}

}  // namespace

void sparse_pattern(cudaStream_t stream, std::span<const PatternTensor> tensors, const Scalars* scalars, int bits,
                    std::uint32_t* columns, std::int32_t* rows) {
  for (std::size_t first = 0; first < tensors.size(); first += kMostTensors) {
    const auto some = tensors.subspan(first, std::min(kMostTensors, tensors.size() - first));
    PatternTensors argument{};
    std::copy(some.begin(), some.end(), argument.at);
    pattern_kernel<<<static_cast<unsigned>(some.size()), kWalkers, 0, stream>>>(argument, scalars, bits, columns, rows);
    check_launch("cuda_init_sparse_pattern");
  }
}

template <typename T>
void sparse_values(cudaStream_t stream, const SparsePattern& pattern, const InitialValues& initial, const Scalars* scalars,
                   T* values) {
  values_kernel<<<static_cast<unsigned>(pattern.row_count), kThreads, 0, stream>>>(pattern, initial, scalars, values);
  check_launch("cuda_init_sparse");
}

template <typename T>
void sparse_expand(cudaStream_t stream, const SparsePattern& pattern, const T* values, T* dense) {
  expand_kernel<<<static_cast<unsigned>(pattern.row_count), kThreads, 0, stream>>>(pattern, values, dense);
  check_launch("expand_kernel");
}

template <typename T>
void sparse_gather(cudaStream_t stream, const SparsePattern& pattern, const T* dense, T* gradient) {
  gather_gradient_kernel<<<static_cast<unsigned>(pattern.row_count), kThreads, 0, stream>>>(pattern, dense, gradient);
  check_launch("gather_gradient_kernel");
}

#define SNUG_INSTANTIATE(T)                                                                                  \
  template void sparse_values(cudaStream_t, const SparsePattern&, const InitialValues&, const Scalars*, T*); \
  template void sparse_expand(cudaStream_t, const SparsePattern&, const T*, T*);                             \
  template void sparse_gather(cudaStream_t, const SparsePattern&, const T*, T*)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
