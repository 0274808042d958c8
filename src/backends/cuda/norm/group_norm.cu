#include "backends/cuda/norm/columns.cuh"
#include "backends/cuda/norm/group_norm.h"

namespace snug::backends::cuda::launch {

namespace {

// The sum of all threads' values, in every thread. `shared` may be used again after the next __syncthreads().
__device__ double sum_of_block(double value, double (&shared)[kThreads]) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

// The elements of one example's group: `channels` of every pixel.
struct GroupPlace {
  std::size_t first;  // position of the first
  std::uint32_t first_channel, channels, count;
  std::uint32_t row_length;

  __device__ explicit GroupPlace(const GroupShape& s) {
    const std::uint32_t example = blockIdx.x / s.groups;
    channels = s.channels / s.groups;
    first_channel = blockIdx.x % s.groups * channels;
    first = std::size_t{example} * s.pixels * s.channels + first_channel;
    count = s.pixels * channels;
    row_length = s.channels;
  }
  __device__ std::size_t position(std::uint32_t i) const { return first + std::size_t{i / channels} * row_length + i % channels; }
  __device__ std::uint32_t channel(std::uint32_t i) const { return first_channel + i % channels; }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) group_norm_kernel(const T* x, const float* weight, const float* bias, T* y,
                                                              float* mean, float* variance, float epsilon, GroupShape shape) {
  __shared__ double shared[kThreads];
  const GroupPlace place(shape);
  float sum = 0;
  for (std::uint32_t i = threadIdx.x; i < place.count; i += kThreads) sum += widen(x[place.position(i)]);
  const double center = sum_of_block(sum, shared) / place.count;
  const auto rounded_center = static_cast<float>(center);
  float squares = 0;
  for (std::uint32_t i = threadIdx.x; i < place.count; i += kThreads) {
    const float difference = widen(x[place.position(i)]) - rounded_center;
    squares += difference * difference;
  }
  const double spread = sum_of_block(squares, shared) / place.count;
  const auto inverse_deviation = static_cast<float>(1.0 / sqrt(spread + static_cast<double>(epsilon)));
  // Each thread writes only what it alone has read.
  for (std::uint32_t i = threadIdx.x; i < place.count; i += kThreads) {
    const std::size_t at = place.position(i);
    const std::uint32_t c = place.channel(i);
    y[at] = narrow<T>((widen(x[at]) - rounded_center) * inverse_deviation * weight[c] + bias[c]);
  }
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = rounded_center;
    variance[blockIdx.x] = static_cast<float>(spread);
  }
}

// With d = weight * dy: dx = (d - mean of d - normalized x * mean of d * normalized x) / deviation, the means over the group.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    group_norm_grad_input_kernel(GroupGradOperands<T> o, float epsilon, GroupShape shape) {
  __shared__ double shared[kThreads];
  const GroupPlace place(shape);
  const float center = o.mean[blockIdx.x];
  const float inverse_deviation = 1.0F / sqrtf(o.variance[blockIdx.x] + epsilon);
  float sum = 0;
  float products = 0;
  for (std::uint32_t i = threadIdx.x; i < place.count; i += kThreads) {
    const std::size_t at = place.position(i);
    const float weighted = o.weight[place.channel(i)] * widen(o.dy[at]);
    sum += weighted;
    products += weighted * ((widen(o.x[at]) - center) * inverse_deviation);
  }
  const auto mean_weighted = static_cast<float>(sum_of_block(sum, shared) / place.count);
  const auto mean_product = static_cast<float>(sum_of_block(products, shared) / place.count);
  for (std::uint32_t i = threadIdx.x; i < place.count; i += kThreads) {
    const std::size_t at = place.position(i);
    const float weighted = o.weight[place.channel(i)] * widen(o.dy[at]);
    const float normalized = (widen(o.x[at]) - center) * inverse_deviation;
    const float centerd = weighted - mean_weighted - normalized * mean_product;
    o.dx[at] = add_to(o.addend, at, narrow<T>(centerd * inverse_deviation));
  }
}

template <typename T>
struct ParameterArguments {
  const T* dy;
  const T* x;
  const float* mean;
  const float* variance;
  float epsilon;
  std::uint32_t groups;
};

template <typename T, int V>
class ParameterTerms {
 public:
  using Arguments = ParameterArguments<T>;
  static constexpr int kVector = V;

  __device__ ParameterTerms(const Arguments& arguments, const RowShape& shape, std::uint32_t /*group*/, std::uint32_t channel)
      : arguments_(arguments), shape_(shape), channel_(channel) {}
  __device__ std::uint32_t rows() const { return shape_.batch * shape_.pixels; }
  __device__ void add(std::uint32_t row, float (&a)[V], float (&b)[V]) const {
    const std::size_t at = std::size_t{row} * shape_.channels + channel_;
    const Pack<T, V> dy = load<V>(arguments_.dy + at);
    const Pack<T, V> x = load<V>(arguments_.x + at);
    const std::uint32_t statistics = row / shape_.pixels * arguments_.groups;
    const std::uint32_t channels_of_group = shape_.channels / arguments_.groups;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const std::uint32_t group = statistics + (channel_ + v) / channels_of_group;
      const float inverse_deviation = 1.0F / sqrtf(arguments_.variance[group] + arguments_.epsilon);
      const float gradient = widen(dy.at[v]);
      a[v] += gradient * ((widen(x.at[v]) - arguments_.mean[group]) * inverse_deviation);
      b[v] += gradient;
    }
  }

 private:
  Arguments arguments_;
  RowShape shape_;
  std::uint32_t channel_;
};

struct FinishParameters {
  float* weight_gradient;
  float* bias_gradient;

  __device__ void operator()(std::uint32_t /*group*/, std::uint32_t channel, double a, double b) const {
    weight_gradient[channel] = static_cast<float>(a);
    bias_gradient[channel] = static_cast<float>(b);
  }
};

}  // namespace

template <typename T>
void group_norm(cudaStream_t stream, const T* x, const float* weight, const float* bias, T* y, float* mean, float* variance,
                float epsilon, const GroupShape& shape) {
  group_norm_kernel<<<shape.batch * shape.groups, kThreads, 0, stream>>>(x, weight, bias, y, mean, variance, epsilon, shape);
  check_launch("cuda_group_norm");
}

template <typename T>
void group_norm_grad_input(cudaStream_t stream, const GroupGradOperands<T>& operands, float epsilon, const GroupShape& shape) {
  group_norm_grad_input_kernel<<<shape.batch * shape.groups, kThreads, 0, stream>>>(operands, epsilon, shape);
  check_launch("cuda_group_norm_grad_input");
}

template <typename T>
void group_norm_grad_parameters(cudaStream_t stream, const T* dy, const T* x, const float* mean, const float* variance,
                                float* weight_gradient, float* bias_gradient, float epsilon, const GroupShape& shape,
                                const ColumnSums& sums, float* partial) {
  const ParameterArguments<T> arguments{dy, x, mean, variance, epsilon, shape.groups};
  const FinishParameters finish{weight_gradient, bias_gradient};
  const RowShape rows{shape.batch, shape.pixels, shape.channels, shape.batch, 1};
  constexpr const char* kName = "cuda_group_norm_grad_parameters";
  if (sums.tiling.vector == 1) {
    launch_sums<ParameterTerms<T, 1>>(stream, arguments, finish, rows, sums, partial, kName);
  } else {
    launch_sums<ParameterTerms<T, kPack<T>>>(stream, arguments, finish, rows, sums, partial, kName);
  }
}

#define SNUG_INSTANTIATE(T)                                                                                                     \
  template void group_norm(cudaStream_t, const T*, const float*, const float*, T*, float*, float*, float, const GroupShape&);   \
  template void group_norm_grad_input(cudaStream_t, const GroupGradOperands<T>&, float, const GroupShape&);                     \
  template void group_norm_grad_parameters(cudaStream_t, const T*, const T*, const float*, const float*, float*, float*, float, \
                                           const GroupShape&, const ColumnSums&, float*)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
