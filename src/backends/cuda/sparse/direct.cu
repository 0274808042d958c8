#include "backends/cuda/sparse/code.cuh"
#include "backends/cuda/sparse/direct.h"

namespace snug::backends::cuda::launch {

namespace {

// Where a nonzero's tap reads at output (0, 0), and its input channel.
struct Tap {
  int h, w, channel;
};

__device__ inline Tap tap_of(const ConvShape& s, std::uint32_t column) {
  const auto channels = static_cast<std::uint32_t>(s.in_channels);
  const int tap = static_cast<int>(column / channels);
  return {tap / s.kernel_width * s.dilation_height - s.padding_height, tap % s.kernel_width * s.dilation_width - s.padding_width,
          static_cast<int>(column % channels)};
}

__device__ inline bool is_below(int position, int size) { return static_cast<unsigned>(position) < static_cast<unsigned>(size); }

// The lanes of a warp have one pixel each and share one output channel. They read 32 nonzeros at once and exchange them.
constexpr unsigned kForwardWarps = 8;

template <typename T>
__global__ void __launch_bounds__(32 * kForwardWarps)
    forward_kernel(const T* x, SparsePattern pattern, const T* values, const T* bias, T* y, ConvShape s, std::uint32_t pixels) {
  const unsigned lane = threadIdx.x % 32;
  const int o = static_cast<int>(blockIdx.y * kForwardWarps + threadIdx.x / 32);
  if (o >= s.out_channels) return;  // a whole warp
  const std::uint32_t pixel = blockIdx.x * 32 + lane;
  const std::uint32_t at = min(pixel, pixels - 1);
  const int w = static_cast<int>(at % s.out_width) * s.stride_width;
  const int h = static_cast<int>(at / s.out_width % s.out_height) * s.stride_height;
  const T* image = x + std::size_t{at / s.out_width / s.out_height} * s.in_height * s.in_width * s.in_channels;
  float sum = 0;
  const std::int32_t end = pattern.rows[o + 1];
  for (std::int32_t base = pattern.rows[o]; base < end; base += 32) {
    const std::int32_t k = min(base + static_cast<std::int32_t>(lane), end - 1);
    const Tap mine = tap_of(s, column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(k)));
    const float value = widen(values[k]);
    const int count = min(32, end - base);
    for (int i = 0; i < count; ++i) {
      const int ih = h + __shfl_sync(~0U, mine.h, i);
      const int iw = w + __shfl_sync(~0U, mine.w, i);
      const int channel = __shfl_sync(~0U, mine.channel, i);
      const float weight = __shfl_sync(~0U, value, i);
      if (is_below(ih, s.in_height) && is_below(iw, s.in_width))
        sum = fmaf(weight, widen(image[(static_cast<std::size_t>(ih) * s.in_width + iw) * s.in_channels + channel]), sum);
    }
  }
  if (bias != nullptr) sum += widen(bias[o]);
  if (pixel < pixels) y[std::size_t{pixel} * s.out_channels + o] = narrow<T>(sum);
}

// The lanes of a warp have one pixel of dx each, and `kChannels` of its channels, whose sums are in shared memory.
constexpr unsigned kInputWarps = 4;
constexpr int kChannels = 32;

// The output row (or column) that is `scaled` / stride; -1: there is none.
__device__ inline int output_of(int scaled, int stride, int size) {
  if (stride == 1) return scaled >= 0 && scaled < size ? scaled : -1;
  return scaled >= 0 && scaled % stride == 0 && scaled / stride < size ? scaled / stride : -1;
}

template <typename T>
__global__ void __launch_bounds__(32 * kInputWarps)
    input_kernel(const T* dy, SparsePattern pattern, const T* values, T* dx, ConvShape s, std::uint32_t pixels) {
  __shared__ float shared[kInputWarps][32][kChannels + 1];
  const unsigned lane = threadIdx.x % 32;
  float(&sums)[32][kChannels + 1] = shared[threadIdx.x / 32];
  const std::uint32_t first_pixel = (blockIdx.x * kInputWarps + threadIdx.x / 32) * 32;
  if (first_pixel >= pixels) return;  // a whole warp
  const int first_channel = static_cast<int>(blockIdx.y) * kChannels;
  const std::uint32_t at = min(first_pixel + lane, pixels - 1);
  const int w = static_cast<int>(at % s.in_width);
  const int h = static_cast<int>(at / s.in_width % s.in_height);
  const T* image = dy + std::size_t{at / s.in_width / s.in_height} * s.out_height * s.out_width * s.out_channels;
  for (int c = 0; c < kChannels; ++c) sums[lane][c] = 0;
  for (int o = 0; o < s.out_channels; ++o) {
    const std::int32_t end = pattern.rows[o + 1];
    for (std::int32_t base = pattern.rows[o]; base < end; base += 32) {
      const std::int32_t k = min(base + static_cast<std::int32_t>(lane), end - 1);
      const Tap mine = tap_of(s, column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(k)));
      const float value = widen(values[k]);
      const bool is_mine = base + static_cast<std::int32_t>(lane) < end && is_below(mine.channel - first_channel, kChannels);
      for (unsigned votes = __ballot_sync(~0U, is_mine); votes != 0; votes &= votes - 1) {
        const int i = __ffs(static_cast<int>(votes)) - 1;
        const int oh = output_of(h - __shfl_sync(~0U, mine.h, i), s.stride_height, s.out_height);
        const int ow = output_of(w - __shfl_sync(~0U, mine.w, i), s.stride_width, s.out_width);
        const int channel = __shfl_sync(~0U, mine.channel, i) - first_channel;
        const float weight = __shfl_sync(~0U, value, i);
        if (oh >= 0 && ow >= 0) {
          const float gradient = widen(image[(static_cast<std::size_t>(oh) * s.out_width + ow) * s.out_channels + o]);
          sums[lane][channel] = fmaf(weight, gradient, sums[lane][channel]);
        }
      }
    }
  }
  __syncwarp();
  const int channel = first_channel + static_cast<int>(lane);
  if (channel >= s.in_channels) return;
  for (unsigned p = 0; p < 32 && first_pixel + p < pixels; ++p)
    dx[std::size_t{first_pixel + p} * s.in_channels + channel] = narrow<T>(sums[p][lane]);
}

// The lanes of a warp each have a nonzero of the same row: neighbors read neighboring channels. The warps of a block divide the
// rows of the images, and add up in order.
constexpr unsigned kWeightWarps = 16;

template <typename T>
__global__ void __launch_bounds__(32 * kWeightWarps)
    weight_kernel(const T* dy, const T* x, SparsePattern pattern, T* gradient, ConvShape s) {
  __shared__ float shared[kWeightWarps][32];
  const std::int32_t begin = pattern.rows[blockIdx.x] + static_cast<std::int32_t>(blockIdx.y) * 32;
  const std::int32_t end = pattern.rows[blockIdx.x + 1];
  if (begin >= end) return;  // a whole block
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::int32_t k = begin + static_cast<std::int32_t>(lane);
  const Tap tap = tap_of(s, column_at(pattern.columns, pattern.bits, static_cast<std::uint32_t>(min(k, end - 1))));
  const int rows = s.batch * s.out_height;
  float sum = 0;
  for (int row = static_cast<int>(warp); row < rows; row += kWeightWarps) {
    const int image = row / s.out_height;
    const int ih = (row - image * s.out_height) * s.stride_height + tap.h;
    const bool is_inside = is_below(ih, s.in_height);
    const T* source = x + (static_cast<std::size_t>(image) * s.in_height + (is_inside ? ih : 0)) * s.in_width * s.in_channels;
    source += tap.channel;
    const T* gradients = dy + static_cast<std::size_t>(row) * s.out_width * s.out_channels + blockIdx.x;
    float row_sum = 0;
#pragma unroll 8
    for (int ow = 0; ow < s.out_width; ++ow) {
      const int iw = ow * s.stride_width + tap.w;
      const bool valid = is_inside && is_below(iw, s.in_width);
      const float value = valid ? widen(source[iw * s.in_channels]) : 0.0F;
      row_sum = fmaf(widen(gradients[ow * s.out_channels]), value, row_sum);
    }
    sum += row_sum;
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || k >= end) return;
  for (unsigned i = 1; i < kWeightWarps; ++i) sum += shared[i][lane];
  gradient[k] = add_to(gradient, static_cast<std::size_t>(k), narrow<T>(sum));
}

}  // namespace

template <typename T>
void sparse_conv2d(cudaStream_t stream, const T* x, const SparsePattern& pattern, const T* values, const T* bias, T* y,
                   const ConvShape& s) {
  const std::int64_t pixels = std::int64_t{s.batch} * s.out_height * s.out_width;
  const dim3 blocks(blocks_for(pixels, 32), blocks_for(s.out_channels, kForwardWarps));
  forward_kernel<<<blocks, 32 * kForwardWarps, 0, stream>>>(x, pattern, values, bias, y, s, static_cast<std::uint32_t>(pixels));
  check_launch("cuda_direct_sparse_conv2d");
}

template <typename T>
void sparse_conv2d_grad_input(cudaStream_t stream, const T* dy, const SparsePattern& pattern, const T* values, T* dx,
                              const ConvShape& s) {
  const std::int64_t pixels = std::int64_t{s.batch} * s.in_height * s.in_width;
  const dim3 blocks(blocks_for(pixels, 32 * kInputWarps), blocks_for(s.in_channels, kChannels));
  input_kernel<<<blocks, 32 * kInputWarps, 0, stream>>>(dy, pattern, values, dx, s, static_cast<std::uint32_t>(pixels));
  check_launch("cuda_direct_sparse_conv2d_grad_input");
}

template <typename T>
void sparse_conv2d_grad_weight(cudaStream_t stream, const T* dy, const T* x, const SparsePattern& pattern, T* gradient,
                               const ConvShape& s) {
  const dim3 blocks(static_cast<unsigned>(pattern.row_count), blocks_for(pattern.column_count, 32));
  weight_kernel<<<blocks, 32 * kWeightWarps, 0, stream>>>(dy, x, pattern, gradient, s);
  check_launch("cuda_direct_sparse_conv2d_grad_weight");
}

#define SNUG_INSTANTIATE(T)                                                                                             \
  template void sparse_conv2d(cudaStream_t, const T*, const SparsePattern&, const T*, const T*, T*, const ConvShape&);  \
  template void sparse_conv2d_grad_input(cudaStream_t, const T*, const SparsePattern&, const T*, T*, const ConvShape&); \
  template void sparse_conv2d_grad_weight(cudaStream_t, const T*, const T*, const SparsePattern&, T*, const ConvShape&)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
