// The sparse store (ops/sparse/sparse.h) on the device: how a pattern and values are drawn, one tensor made dense in a workspace,
// a dense gradient gathered at the nonzeros. Patterns are the host's, bit for bit. T: float, __half or __nv_bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

// One tensor of the store. Columns are read as words: the store is aligned, and has spare bytes after its last.
struct SparsePattern {
  const std::uint32_t* columns;
  const std::int32_t* rows;  // of the tensor's first row
  int bits;
  int row_count, column_count;
};

// A tensor whose pattern is drawn.
struct PatternTensor {
  std::uint64_t first_place;  // places and values of the tensors before it
  std::uint32_t first_value, nonzeros;
  std::uint32_t first_row, rows, columns;
};
// `columns` is all zeros.
void sparse_pattern(cudaStream_t stream, std::span<const PatternTensor> tensors, const Scalars* scalars, int bits,
                    std::uint32_t* columns, std::int32_t* rows);

// The initial values of a tensor. `taps`, `channels`: of a row.
struct InitialValues {
  std::uint64_t key;
  double spread;
  bool uniform;
  std::uint32_t taps, channels;
};
template <typename T>
void sparse_values(cudaStream_t stream, const SparsePattern& pattern, const InitialValues& initial, const Scalars* scalars,
                   T* values);

// dense[row][column], zeros included.
template <typename T>
void sparse_expand(cudaStream_t stream, const SparsePattern& pattern, const T* values, T* dense);

// gradient[k] += dense at the place of value k; the sum is rounded, like that of an `add`.
template <typename T>
void sparse_gather(cudaStream_t stream, const SparsePattern& pattern, const T* dense, T* gradient);

// ---- rewiring, as in backends/rewiring.h

struct RewireTensor {
  std::uint64_t first_place;
  std::uint32_t first_row, rows, columns;
};

// All but the scalars are written.
struct RewireOperands {
  void* values;
  std::uint32_t* columns;
  std::int32_t* rows;
  double* threshold;
  const Scalars* scalars;
  double* pruned;
};

struct RewireConstants {
  std::uint32_t nonzeros;
  std::int64_t target;
  int bits;
  bool per_tensor;
};

// A few numbers per tensor.
std::size_t rewire_scratch(std::size_t tensors);

template <typename T>
void sparse_rewire(cudaStream_t stream, std::span<const RewireTensor> tensors, const RewireOperands& operands,
                   const RewireConstants& constants, std::byte* scratch);

}  // namespace snug::backends::cuda::launch
