// Convolutions of f32 values in full f32, as matrix products whose left factor is gathered during the product: nothing is copied
// to another layout. cuDNN has tensor-core kernels for channels-last f16 and TF32; for plain f32 it converts everything to
// channels-first and back, in scratch as large as the operands, and its fast weight gradients add up in no fixed order. Here the
// shape alone decides the order of every sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "backends/cuda/convolution/direct.h"

namespace snug::backends::cuda::launch {

// The part of the product that a block of threads computes: a row is a pixel of the result, a column one of its channels.
enum class GemmTile : std::uint8_t { rows128_columns16, rows64_columns32, rows128_columns64 };
// The fastest on an H200; other GPUs use the same, for the same bits.
GemmTile gemm_tile(std::int64_t rows, int columns);

// One group. `bias` and `addend` nullptr: none; the sum is rounded before each is added. Only one of stride and dilation may
// differ from 1 in grad_input.
void gemm_conv2d(cudaStream_t stream, const float* x, const float* weight, const float* bias, float* y, const ConvShape& shape,
                 GemmTile tile);
void gemm_conv2d_grad_input(cudaStream_t stream, const float* dy, const float* weight, const float* addend, float* dx,
                            const ConvShape& shape, GemmTile tile);

// The weight gradient sums over all pixels, and its result is small: pixels are divided into `splits`, whose sums are kept in
// `partial` until they are added up in order.
struct GemmSplits {
  int splits;
  int pixels;  // of one split, a multiple of what a block takes at once; the last has the rest
};
// As many as keep the GPU busy and whose sums fit into `limit` bytes; one split needs no scratch. Idempotent: with the scratch of
// the result as the limit, the result is the same.
GemmSplits gemm_splits(const ConvShape& shape, std::size_t limit);
// Bytes of `partial`.
std::size_t gemm_scratch(const ConvShape& shape, const GemmSplits& splits);

void gemm_conv2d_grad_weight(cudaStream_t stream, const float* dy, const float* x, const float* addend, float* dw, float* partial,
                             const ConvShape& shape, const GemmSplits& splits);

}  // namespace snug::backends::cuda::launch
