#include "backends/cuda/convolution/direct.h"
#include "backends/cuda/device_code.cuh"

namespace snug::backends::cuda::launch {

namespace {

__device__ inline std::size_t input_at(const ConvShape& s, int n, int h, int w, int c) {
  return ((std::size_t{static_cast<unsigned>(n)} * s.in_height + h) * s.in_width + w) * s.in_channels + c;
}
__device__ inline std::size_t output_at(const ConvShape& s, int n, int h, int w, int c) {
  return ((std::size_t{static_cast<unsigned>(n)} * s.out_height + h) * s.out_width + w) * s.out_channels + c;
}
// Input channel `ci` counted within the group.
__device__ inline std::size_t weight_at(const ConvShape& s, int co, int kh, int kw, int ci) {
  return ((std::size_t{static_cast<unsigned>(co)} * s.kernel_height + kh) * s.kernel_width + kw) * (s.in_channels / s.groups) +
         ci;
}

// One thread per element of y.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    conv2d_kernel(const T* x, const T* weight, const T* bias, T* y, ConvShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const int co = static_cast<int>(i % s.out_channels);
  std::uint32_t pixel = i / s.out_channels;
  const int ow = static_cast<int>(pixel % s.out_width);
  pixel /= s.out_width;
  const int oh = static_cast<int>(pixel % s.out_height);
  const int n = static_cast<int>(pixel / s.out_height);
  const int depth = s.in_channels / s.groups;
  const int first_channel = co / (s.out_channels / s.groups) * depth;
  float sum = 0;
  for (int kh = 0; kh < s.kernel_height; ++kh) {
    const int ih = oh * s.stride_height - s.padding_height + kh * s.dilation_height;
    if (ih < 0 || ih >= s.in_height) continue;
    for (int kw = 0; kw < s.kernel_width; ++kw) {
      const int iw = ow * s.stride_width - s.padding_width + kw * s.dilation_width;
      if (iw < 0 || iw >= s.in_width) continue;
      const T* from = x + input_at(s, n, ih, iw, first_channel);
      const T* by = weight + weight_at(s, co, kh, kw, 0);
      for (int ci = 0; ci < depth; ++ci) sum = fmaf(widen(from[ci]), widen(by[ci]), sum);
    }
  }
  if (bias != nullptr) sum += widen(bias[co]);
  y[i] = narrow<T>(sum);
}

// The output row (or column) whose tap `k` reads input `in`; -1 when there is none.
__device__ inline int output_of(int in, int k, int stride, int padding, int dilation, int size) {
  const int scaled = in + padding - k * dilation;
  return scaled >= 0 && scaled % stride == 0 && scaled / stride < size ? scaled / stride : -1;
}

// One thread per element of dx.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(const T* dy, const T* weight, T* dx, ConvShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const int channel = static_cast<int>(i % s.in_channels);
  std::uint32_t pixel = i / s.in_channels;
  const int iw = static_cast<int>(pixel % s.in_width);
  pixel /= s.in_width;
  const int ih = static_cast<int>(pixel % s.in_height);
  const int n = static_cast<int>(pixel / s.in_height);
  const int group_in = s.in_channels / s.groups;
  const int group_out = s.out_channels / s.groups;
  const int ci = channel % group_in;
  const int first_out = channel / group_in * group_out;
  float sum = 0;
  for (int kh = 0; kh < s.kernel_height; ++kh) {
    const int oh = output_of(ih, kh, s.stride_height, s.padding_height, s.dilation_height, s.out_height);
    if (oh < 0) continue;
    for (int kw = 0; kw < s.kernel_width; ++kw) {
      const int ow = output_of(iw, kw, s.stride_width, s.padding_width, s.dilation_width, s.out_width);
      if (ow < 0) continue;
      const T* from = dy + output_at(s, n, oh, ow, first_out);
      for (int co = 0; co < group_out; ++co) {
        sum = fmaf(widen(from[co]), widen(weight[weight_at(s, first_out + co, kh, kw, ci)]), sum);
      }
    }
  }
  dx[i] = narrow<T>(sum);
}

// One block per element of dw: its threads divide the output pixels, then add up as a tree.
template <typename T>
__global__ void __launch_bounds__(kThreads) grad_weight_kernel(const T* dy, const T* x, T* dw, ConvShape s) {
  __shared__ float shared[kThreads];
  const int group_in = s.in_channels / s.groups;
  const int group_out = s.out_channels / s.groups;
  unsigned at = blockIdx.x;
  const int ci = static_cast<int>(at % group_in);
  at /= group_in;
  const int kw = static_cast<int>(at % s.kernel_width);
  at /= s.kernel_width;
  const int kh = static_cast<int>(at % s.kernel_height);
  const int co = static_cast<int>(at / s.kernel_height);
  const int channel = co / group_out * group_in + ci;
  const unsigned pixels = static_cast<unsigned>(s.batch) * s.out_height * s.out_width;
  float sum = 0;
  for (unsigned pixel = threadIdx.x; pixel < pixels; pixel += kThreads) {
    const int ow = static_cast<int>(pixel % s.out_width);
    const int oh = static_cast<int>(pixel / s.out_width % s.out_height);
    const int n = static_cast<int>(pixel / s.out_width / s.out_height);
    const int ih = oh * s.stride_height - s.padding_height + kh * s.dilation_height;
    const int iw = ow * s.stride_width - s.padding_width + kw * s.dilation_width;
    if (ih < 0 || ih >= s.in_height || iw < 0 || iw >= s.in_width) continue;
    sum = fmaf(widen(dy[output_at(s, n, oh, ow, co)]), widen(x[input_at(s, n, ih, iw, channel)]), sum);
  }
  shared[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) dw[blockIdx.x] = narrow<T>(shared[0]);
}

// One thread per element of the result, which in a workspace (logits) may have more than 2^32.
template <typename T, typename R>
__global__ void __launch_bounds__(kThreads)
    product_kernel(const T* a, const T* b, const T* bias, R* result, ProductShape s, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::size_t rows_before = i / s.columns;
  const std::size_t matrix = rows_before / s.rows;
  const auto row = static_cast<std::uint32_t>(rows_before % s.rows);
  const auto column = static_cast<std::uint32_t>(i % s.columns);
  const T* left = a + matrix * s.a_matrix + std::size_t{row} * s.a_row;
  const T* right = b + matrix * s.b_matrix + std::size_t{column} * s.b_column;
  float sum = 0;
  for (std::uint32_t k = 0; k < s.depth; ++k) {
    sum = fmaf(widen(left[std::size_t{k} * s.a_depth]), widen(right[std::size_t{k} * s.b_depth]), sum);
  }
  if (bias != nullptr) sum += widen(bias[column]);
  R& out = result[matrix * s.result_matrix + std::size_t{row} * s.result_row + column];
  out = narrow<R>(s.adds ? widen(out) + sum : sum);
}

}  // namespace

template <typename T>
void conv2d(cudaStream_t stream, const T* x, const T* weight, const T* bias, T* y, const ConvShape& s) {
  const std::int64_t count = std::int64_t{s.batch} * s.out_height * s.out_width * s.out_channels;
  conv2d_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, weight, bias, y, s, static_cast<std::uint32_t>(count));
  check_launch("cuda_conv2d");
}

template <typename T>
void conv2d_grad_input(cudaStream_t stream, const T* dy, const T* weight, T* dx, const ConvShape& s) {
  const std::int64_t count = std::int64_t{s.batch} * s.in_height * s.in_width * s.in_channels;
  grad_input_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dy, weight, dx, s, static_cast<std::uint32_t>(count));
  check_launch("cuda_conv2d_grad_input");
}

template <typename T>
void conv2d_grad_weight(cudaStream_t stream, const T* dy, const T* x, T* dw, const ConvShape& s) {
  const std::int64_t count = std::int64_t{s.out_channels} * s.kernel_height * s.kernel_width * (s.in_channels / s.groups);
  grad_weight_kernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(dy, x, dw, s);
  check_launch("cuda_conv2d_grad_weight");
}

template <typename T, typename R>
void product(cudaStream_t stream, const T* a, const T* b, const T* bias, R* result, const ProductShape& s) {
  const std::int64_t count = std::int64_t{s.batch} * s.rows * s.columns;
  product_kernel<<<blocks_for(count), kThreads, 0, stream>>>(a, b, bias, result, s, static_cast<std::size_t>(count));
  check_launch("cuda_product");
}

#define SNUG_INSTANTIATE(T)                                                                 \
  template void conv2d(cudaStream_t, const T*, const T*, const T*, T*, const ConvShape&);   \
  template void conv2d_grad_input(cudaStream_t, const T*, const T*, T*, const ConvShape&);  \
  template void conv2d_grad_weight(cudaStream_t, const T*, const T*, T*, const ConvShape&); \
  template void product(cudaStream_t, const T*, const T*, const T*, T*, const ProductShape&)

template void product(cudaStream_t, const __half*, const __half*, const __half*, float*, const ProductShape&);
template void product(cudaStream_t, const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, float*,
                      const ProductShape&);

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
