#include "backends/cuda/device_code.cuh"
#include "backends/cuda/pointwise/random.h"
#include "ops/random_draws.h"

namespace snug::backends::cuda::launch {

namespace {

__device__ inline std::uint32_t logical_number(std::uint32_t position, const LogicalOrder& order) {
  if (order.channels == 0) return position;
  const std::uint32_t within = position % order.example;
  const std::uint32_t pixels = order.example / order.channels;
  return position - within + within % order.channels * pixels + within / order.channels;
}

// In double, so that the result is the reference's.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(const T* x, T* y, const Scalars* scalars, double probability, std::uint64_t key,
                   std::uint64_t draws_per_example, LogicalOrder order, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint64_t element = scalars->first_example * draws_per_example + logical_number(i, order);
  const std::uint32_t word = ops::dropout_word(scalars->seed, scalars->step, key, element);
  const double value = widen(x[i]);
  y[i] = narrow<T>(ops::dropout_keeps(word, probability) ? value / (1.0 - probability) : 0.0);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) fill_kernel(T* w, double value, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) w[i] = narrow<T>(value);
}

struct DrawNormal {
  __device__ double operator()(std::uint64_t seed, std::uint64_t key, std::uint64_t element) const {
    return ops::draw_init_normal(seed, key, element);
  }
};
struct DrawUniform {
  __device__ double operator()(std::uint64_t seed, std::uint64_t key, std::uint64_t element) const {
    return ops::draw_init_uniform(seed, key, element);
  }
};

template <typename T, typename Draw>
__global__ void __launch_bounds__(kThreads) draw_kernel(Draw draw, T* w, const Scalars* scalars, double spread, std::uint64_t key,
                                                        LogicalOrder order, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) w[i] = narrow<T>(spread * draw(scalars->seed, key, logical_number(i, order)));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    image_kernel(const std::uint8_t* images, T* y, const Scalars* scalars, ImageConstants constants, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t c = i % constants.channels;
  std::uint32_t pixel = i / constants.channels;
  const std::int64_t w = pixel % constants.width;
  pixel /= constants.width;
  const std::int64_t h = pixel % constants.height;
  const std::uint32_t n = pixel / constants.height;
  std::int64_t from_h = h;
  std::int64_t from_w = w;
  if (constants.augment) {
    const ops::ImageAugmentation draw =
        ops::draw_image_augmentation(scalars->seed, scalars->step, scalars->first_example + n, constants.padding);
    from_h = h + draw.dy - constants.padding;
    from_w = (draw.flip ? std::int64_t{constants.width} - 1 - w : w) + draw.dx - constants.padding;
  }
  double value = 0;
  if (from_h >= 0 && from_h < constants.height && from_w >= 0 && from_w < constants.width) {
    const std::size_t at = ((std::size_t{n} * constants.height + from_h) * constants.width + from_w) * constants.channels + c;
    value = (images[at] - constants.mean[c]) / constants.deviation[c];
  }
  y[i] = narrow<T>(value);
}

}  // namespace

template <typename T>
void dropout(cudaStream_t stream, const T* x, T* y, const Scalars* scalars, double probability, std::uint64_t key,
             std::uint64_t draws_per_example, LogicalOrder order, std::int64_t count) {
  dropout_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, y, scalars, probability, key, draws_per_example, order,
                                                             static_cast<std::uint32_t>(count));
  check_launch("cuda_dropout");
}

template <typename T>
void fill(cudaStream_t stream, T* w, double value, std::int64_t count) {
  fill_kernel<<<blocks_for(count), kThreads, 0, stream>>>(w, value, static_cast<std::uint32_t>(count));
  check_launch("cuda_fill");
}

template <typename T>
void init_normal(cudaStream_t stream, T* w, const Scalars* scalars, double std, std::uint64_t key, LogicalOrder order,
                 std::int64_t count) {
  draw_kernel<<<blocks_for(count), kThreads, 0, stream>>>(DrawNormal{}, w, scalars, std, key, order,
                                                          static_cast<std::uint32_t>(count));
  check_launch("cuda_init_normal");
}

template <typename T>
void init_uniform(cudaStream_t stream, T* w, const Scalars* scalars, double bound, std::uint64_t key, LogicalOrder order,
                  std::int64_t count) {
  draw_kernel<<<blocks_for(count), kThreads, 0, stream>>>(DrawUniform{}, w, scalars, bound, key, order,
                                                          static_cast<std::uint32_t>(count));
  check_launch("cuda_init_uniform");
}

template <typename T>
void image_input(cudaStream_t stream, const std::uint8_t* images, T* y, const Scalars* scalars, const ImageConstants& constants,
                 std::int64_t count) {
  image_kernel<<<blocks_for(count), kThreads, 0, stream>>>(images, y, scalars, constants, static_cast<std::uint32_t>(count));
  check_launch("cuda_image_input");
}

template void fill(cudaStream_t, double*, double, std::int64_t);
template void fill(cudaStream_t, std::uint8_t*, double, std::int64_t);

#define SNUG_INSTANTIATE(T)                                                                                             \
  template void dropout(cudaStream_t, const T*, T*, const Scalars*, double, std::uint64_t, std::uint64_t, LogicalOrder, \
                        std::int64_t);                                                                                  \
  template void fill(cudaStream_t, T*, double, std::int64_t);                                                           \
  template void init_normal(cudaStream_t, T*, const Scalars*, double, std::uint64_t, LogicalOrder, std::int64_t);       \
  template void init_uniform(cudaStream_t, T*, const Scalars*, double, std::uint64_t, LogicalOrder, std::int64_t);      \
  template void image_input(cudaStream_t, const std::uint8_t*, T*, const Scalars*, const ImageConstants&, std::int64_t)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
