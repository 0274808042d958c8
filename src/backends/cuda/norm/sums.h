// Sums over channels-last rows, and what is added to every row. T: float, __half or __nv_bfloat16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/norm/columns.h"

namespace snug::backends::cuda::launch {

// y[c] (+ addend) = sum over rows of x. One group.
template <typename T>
void sum_to_channels(cudaStream_t stream, const T* x, T* y, const T* addend, const RowShape& shape, const ColumnSums& sums,
                     float* partial);
// The same for few rows: no workspace.
template <typename T>
void sum_few_rows(cudaStream_t stream, const T* x, T* y, const T* addend, std::uint32_t rows, std::uint32_t channels);

// y[r, c] += bias[c], rounded once more. One group.
template <typename T>
void add_bias(cudaStream_t stream, T* y, const T* bias, const RowShape& shape, const ColumnTiling& tiling);

}  // namespace snug::backends::cuda::launch
