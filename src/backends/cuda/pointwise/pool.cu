#include "backends/cuda/device_code.cuh"
#include "backends/cuda/pointwise/pool.h"

namespace snug::backends::cuda::launch {

namespace {

struct Range {
  int begin, end;  // half open
};

// Along one dimension: the input positions of window `out`, without padding.
__device__ inline Range inputs_of(int out, int kernel, int stride, int padding, int in_size) {
  const int begin = out * stride - padding;
  return {max(begin, 0), min(begin + kernel, in_size)};
}

// Along one dimension: the windows that cover input `in`.
__device__ inline Range windows_over(int in, int kernel, int stride, int padding, int out_size) {
  const int padded = in + padding;
  return {padded < kernel ? 0 : (padded - kernel) / stride + 1, min(padded / stride + 1, out_size)};
}

// The indices of a position in channels-last order.
struct Place {
  int n, h, w, c;

  __device__ Place(std::uint32_t position, int height, int width, int channels) {
    c = static_cast<int>(position % channels);
    position /= channels;
    w = static_cast<int>(position % width);
    position /= width;
    h = static_cast<int>(position % height);
    n = static_cast<int>(position / height);
  }
};

__device__ inline std::size_t input_at(const PoolShape& s, int n, int h, int w, int c) {
  return ((std::size_t{static_cast<unsigned>(n)} * s.in_height + h) * s.in_width + w) * s.channels + c;
}
__device__ inline std::size_t output_at(const PoolShape& s, int n, int h, int w, int c) {
  return ((std::size_t{static_cast<unsigned>(n)} * s.out_height + h) * s.out_width + w) * s.channels + c;
}

struct Winner {
  int ih, iw;
  int number;  // in its window, row by row, counting places in the padding
  float value;
};

// The largest of the window at (oh, ow), the first of equals. A NaN is larger than any number.
template <typename T>
__device__ Winner winner_of(const PoolShape& s, const T* x, int n, int c, int oh, int ow) {
  const Range rows = inputs_of(oh, s.kernel_height, s.stride_height, s.padding_height, s.in_height);
  const Range columns = inputs_of(ow, s.kernel_width, s.stride_width, s.padding_width, s.in_width);
  Winner winner{rows.begin, columns.begin, 0, widen(x[input_at(s, n, rows.begin, columns.begin, c)])};
  for (int ih = rows.begin; ih < rows.end; ++ih) {
    for (int iw = columns.begin; iw < columns.end; ++iw) {
      const float value = widen(x[input_at(s, n, ih, iw, c)]);
      if (value > winner.value || (isnan(value) && !isnan(winner.value))) winner = {ih, iw, 0, value};
    }
  }
  const int kh = winner.ih - (oh * s.stride_height - s.padding_height);
  const int kw = winner.iw - (ow * s.stride_width - s.padding_width);
  winner.number = kh * s.kernel_width + kw;
  return winner;
}

template <typename T>
__device__ Winner winner_at(const PoolShape& s, const T* x, std::uint32_t output) {
  const Place p(output, s.out_height, s.out_width, s.channels);
  return winner_of(s, x, p.n, p.c, p.h, p.w);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) max_pool_kernel(const T* x, T* y, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) y[i] = narrow<T>(winner_at(s, x, i).value);
}

// A thread writes a whole byte: one 8-bit number, or two of 4 bits.
template <typename T>
__global__ void __launch_bounds__(kThreads) argmax_kernel(const T* x, Argmax argmax, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (!argmax.nibbles) {
    if (i < count) argmax.data[i] = static_cast<std::uint8_t>(winner_at(s, x, i).number);
    return;
  }
  const std::uint32_t first = 2 * i;
  if (first >= count) return;
  const int low = winner_at(s, x, first).number;
  const int high = first + 1 < count ? winner_at(s, x, first + 1).number : 0;
  argmax.data[i] = static_cast<std::uint8_t>(low + 16 * high);
}

// dx of a pixel is the sum of dy over the windows whose largest element it is: won(oh, ow, position of the window).
template <typename T, typename Won>
__device__ void sum_over_won_windows(const T* dy, T* dx, const T* addend, const PoolShape& s, std::uint32_t i, const Place& p,
                                     const Won& won) {
  const Range rows = windows_over(p.h, s.kernel_height, s.stride_height, s.padding_height, s.out_height);
  const Range columns = windows_over(p.w, s.kernel_width, s.stride_width, s.padding_width, s.out_width);
  float sum = 0;
  for (int oh = rows.begin; oh < rows.end; ++oh) {
    for (int ow = columns.begin; ow < columns.end; ++ow) {
      const std::size_t window = output_at(s, p.n, oh, ow, p.c);
      if (won(oh, ow, window)) sum += widen(dy[window]);
    }
  }
  dx[i] = add_to(addend, i, narrow<T>(sum));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_pool_grad_kernel(const T* dy, const T* x, T* dx, const T* addend, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place p(i, s.in_height, s.in_width, s.channels);
  sum_over_won_windows(dy, dx, addend, s, i, p, [&](int oh, int ow, std::size_t /*window*/) {
    const Winner winner = winner_of(s, x, p.n, p.c, oh, ow);
    return winner.ih == p.h && winner.iw == p.w;
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_pool_grad_argmax_kernel(const T* dy, Argmax argmax, T* dx, const T* addend, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place p(i, s.in_height, s.in_width, s.channels);
  sum_over_won_windows(dy, dx, addend, s, i, p, [&](int oh, int ow, std::size_t window) {
    const int number = argmax.nibbles ? (argmax.data[window / 2] >> (window % 2 * 4)) & 15 : argmax.data[window];
    const int kh = p.h - (oh * s.stride_height - s.padding_height);
    const int kw = p.w - (ow * s.stride_width - s.padding_width);
    return number == kh * s.kernel_width + kw;
  });
}

// The padding counts as zeros, so every window is divided by its full size.
template <typename T>
__global__ void __launch_bounds__(kThreads) avg_pool_kernel(const T* x, T* y, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place p(i, s.out_height, s.out_width, s.channels);
  const Range rows = inputs_of(p.h, s.kernel_height, s.stride_height, s.padding_height, s.in_height);
  const Range columns = inputs_of(p.w, s.kernel_width, s.stride_width, s.padding_width, s.in_width);
  float sum = 0;
  for (int ih = rows.begin; ih < rows.end; ++ih) {
    for (int iw = columns.begin; iw < columns.end; ++iw) sum += widen(x[input_at(s, p.n, ih, iw, p.c)]);
  }
  y[i] = narrow<T>(sum / static_cast<float>(s.kernel_height * s.kernel_width));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    avg_pool_grad_kernel(const T* dy, T* dx, const T* addend, PoolShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place p(i, s.in_height, s.in_width, s.channels);
  const Range rows = windows_over(p.h, s.kernel_height, s.stride_height, s.padding_height, s.out_height);
  const Range columns = windows_over(p.w, s.kernel_width, s.stride_width, s.padding_width, s.out_width);
  float sum = 0;
  for (int oh = rows.begin; oh < rows.end; ++oh) {
    for (int ow = columns.begin; ow < columns.end; ++ow) sum += widen(dy[output_at(s, p.n, oh, ow, p.c)]);
  }
  dx[i] = add_to(addend, i, narrow<T>(sum / static_cast<float>(s.kernel_height * s.kernel_width)));
}

// Neighboring threads read neighboring channels.
template <typename T>
__global__ void __launch_bounds__(kThreads) global_avg_pool_kernel(const T* x, T* y, PixelShape s) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= s.batch * s.channels) return;
  const T* from = x + std::size_t{i / s.channels} * s.pixels * s.channels + i % s.channels;
  float sum = 0;
  for (std::uint32_t p = 0; p < s.pixels; ++p) sum += widen(from[std::size_t{p} * s.channels]);
  y[i] = narrow<T>(sum / static_cast<float>(s.pixels));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    global_avg_pool_grad_kernel(const T* dy, T* dx, const T* addend, PixelShape s, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t n = i / (s.pixels * s.channels);
  const std::uint32_t c = i % s.channels;
  dx[i] = add_to(addend, i, narrow<T>(widen(dy[n * s.channels + c]) / static_cast<float>(s.pixels)));
}

// V divides both numbers of channels, so a pack is either copied or all zero.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) shortcut_kernel(const T* x, T* y, ShortcutShape s, std::uint32_t packs) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= packs) return;
  const std::uint32_t packs_of_pixel = s.out_channels / V;
  const std::uint32_t c = i % packs_of_pixel * V;
  std::uint32_t pixel = i / packs_of_pixel;
  const std::uint32_t w = pixel % s.out_width;
  pixel /= s.out_width;
  const std::uint32_t h = pixel % s.out_height;
  const std::uint32_t n = pixel / s.out_height;
  Pack<T, V> pack;
  if (c < s.in_channels) {
    pack = load<V>(x + ((std::size_t{n} * s.in_height + h * s.stride) * s.in_width + w * s.stride) * s.in_channels + c);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(0.0F);
  }
  store<V>(y + std::size_t{i} * V, pack);
}

template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    shortcut_grad_kernel(const T* dy, T* dx, const T* addend, ShortcutShape s, std::uint32_t packs) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= packs) return;
  const std::uint32_t packs_of_pixel = s.in_channels / V;
  const std::uint32_t c = i % packs_of_pixel * V;
  std::uint32_t pixel = i / packs_of_pixel;
  const std::uint32_t w = pixel % s.in_width;
  pixel /= s.in_width;
  const std::uint32_t h = pixel % s.in_height;
  const std::uint32_t n = pixel / s.in_height;
  Pack<T, V> pack;
  if (h % s.stride == 0 && w % s.stride == 0) {
    pack = load<V>(dy + ((std::size_t{n} * s.out_height + h / s.stride) * s.out_width + w / s.stride) * s.out_channels + c);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(0.0F);
  }
  store_sum<V>(dx, addend, std::size_t{i} * V, pack);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(const T* x, T* y, std::uint32_t inner, std::uint32_t example, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t within = i % example;
  y[i] = x[i - within + within % inner * (example / inner) + within / inner];
}

}  // namespace

template <typename T>
void max_pool(cudaStream_t stream, const T* x, T* y, const PoolShape& shape) {
  const std::int64_t count = shape.outputs();
  max_pool_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, y, shape, static_cast<std::uint32_t>(count));
  check_launch("cuda_max_pool");
}

template <typename T>
void max_pool_argmax(cudaStream_t stream, const T* x, Argmax argmax, const PoolShape& shape) {
  const std::int64_t count = shape.outputs();
  const std::int64_t bytes = argmax.nibbles ? (count + 1) / 2 : count;
  argmax_kernel<<<blocks_for(bytes), kThreads, 0, stream>>>(x, argmax, shape, static_cast<std::uint32_t>(count));
  check_launch("cuda_max_pool_argmax");
}

template <typename T>
void max_pool_grad(cudaStream_t stream, const T* dy, const T* x, T* dx, const T* addend, const PoolShape& shape) {
  const std::int64_t count = shape.inputs();
  max_pool_grad_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dy, x, dx, addend, shape, static_cast<std::uint32_t>(count));
  check_launch("cuda_max_pool_grad");
}

template <typename T>
void max_pool_grad_argmax(cudaStream_t stream, const T* dy, Argmax argmax, T* dx, const T* addend, const PoolShape& shape) {
  const std::int64_t count = shape.inputs();
  max_pool_grad_argmax_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dy, argmax, dx, addend, shape,
                                                                          static_cast<std::uint32_t>(count));
  check_launch("cuda_max_pool_grad_argmax");
}

template <typename T>
void avg_pool(cudaStream_t stream, const T* x, T* y, const PoolShape& shape) {
  const std::int64_t count = shape.outputs();
  avg_pool_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, y, shape, static_cast<std::uint32_t>(count));
  check_launch("cuda_avg_pool");
}

template <typename T>
void avg_pool_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const PoolShape& shape) {
  const std::int64_t count = shape.inputs();
  avg_pool_grad_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dy, dx, addend, shape, static_cast<std::uint32_t>(count));
  check_launch("cuda_avg_pool_grad");
}

template <typename T>
void global_avg_pool(cudaStream_t stream, const T* x, T* y, const PixelShape& shape) {
  global_avg_pool_kernel<<<blocks_for(std::int64_t{shape.batch} * shape.channels), kThreads, 0, stream>>>(x, y, shape);
  check_launch("cuda_global_avg_pool");
}

template <typename T>
void global_avg_pool_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const PixelShape& shape) {
  const std::int64_t count = std::int64_t{shape.batch} * shape.channels * shape.pixels;
  global_avg_pool_grad_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dy, dx, addend, shape,
                                                                          static_cast<std::uint32_t>(count));
  check_launch("cuda_global_avg_pool_grad");
}

template <typename T>
void shortcut(cudaStream_t stream, const T* x, T* y, const ShortcutShape& s) {
  const std::int64_t count = std::int64_t{s.batch} * s.out_height * s.out_width * s.out_channels;
  if (s.in_channels % kPack<T> == 0 && s.out_channels % kPack<T> == 0) {
    const std::int64_t packs = count / kPack<T>;
    shortcut_kernel<T, kPack<T>><<<blocks_for(packs), kThreads, 0, stream>>>(x, y, s, static_cast<std::uint32_t>(packs));
  } else {
    shortcut_kernel<T, 1><<<blocks_for(count), kThreads, 0, stream>>>(x, y, s, static_cast<std::uint32_t>(count));
  }
  check_launch("cuda_shortcut");
}

template <typename T>
void shortcut_grad(cudaStream_t stream, const T* dy, T* dx, const T* addend, const ShortcutShape& s) {
  const std::int64_t count = std::int64_t{s.batch} * s.in_height * s.in_width * s.in_channels;
  if (s.in_channels % kPack<T> == 0 && s.out_channels % kPack<T> == 0) {
    const std::int64_t packs = count / kPack<T>;
    shortcut_grad_kernel<T, kPack<T>>
        <<<blocks_for(packs), kThreads, 0, stream>>>(dy, dx, addend, s, static_cast<std::uint32_t>(packs));
  } else {
    shortcut_grad_kernel<T, 1><<<blocks_for(count), kThreads, 0, stream>>>(dy, dx, addend, s, static_cast<std::uint32_t>(count));
  }
  check_launch("cuda_shortcut_grad");
}

template <typename T>
void transpose_examples(cudaStream_t stream, const T* x, T* y, std::uint32_t inner, std::uint32_t example, std::int64_t count) {
  transpose_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, y, inner, example, static_cast<std::uint32_t>(count));
  check_launch("cuda_relayout");
}

#define SNUG_INSTANTIATE(T)                                                                           \
  template void max_pool(cudaStream_t, const T*, T*, const PoolShape&);                               \
  template void max_pool_argmax(cudaStream_t, const T*, Argmax, const PoolShape&);                    \
  template void max_pool_grad(cudaStream_t, const T*, const T*, T*, const T*, const PoolShape&);      \
  template void max_pool_grad_argmax(cudaStream_t, const T*, Argmax, T*, const T*, const PoolShape&); \
  template void avg_pool(cudaStream_t, const T*, T*, const PoolShape&);                               \
  template void avg_pool_grad(cudaStream_t, const T*, T*, const T*, const PoolShape&);                \
  template void global_avg_pool(cudaStream_t, const T*, T*, const PixelShape&);                       \
  template void global_avg_pool_grad(cudaStream_t, const T*, T*, const T*, const PixelShape&);        \
  template void shortcut(cudaStream_t, const T*, T*, const ShortcutShape&);                           \
  template void shortcut_grad(cudaStream_t, const T*, T*, const T*, const ShortcutShape&);            \
  template void transpose_examples(cudaStream_t, const T*, T*, std::uint32_t, std::uint32_t, std::int64_t)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
