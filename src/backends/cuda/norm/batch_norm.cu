#include "backends/cuda/norm/batch_norm.h"
#include "backends/cuda/norm/columns.cuh"

namespace snug::backends::cuda::launch {

namespace {

// Mean and inverse deviation of a thread's channels.
template <int V>
struct ChannelStatistics {
  float mean[V];
  float inverse_deviation[V];

  __device__ ChannelStatistics(const Statistics& statistics, const RowShape& shape, std::uint32_t group, std::uint32_t channel) {
    const std::size_t row = statistics.fixed ? 0 : std::size_t{group} * shape.channels;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      mean[v] = statistics.mean[row + channel + v];
      inverse_deviation[v] = 1.0F / sqrtf(statistics.variance[row + channel + v] + statistics.epsilon);
    }
  }
  __device__ float normalized(int v, float x) const { return (x - mean[v]) * inverse_deviation[v]; }
};

template <typename T>
struct StatisticsArguments {
  const T* x;
  const Scalars* scalars;
};

// Sums of x - s and its square, where s is the group's first pixel: close to the data, so that the variance stays precise where
// the mean is large.
template <typename T, int V>
class StatisticsTerms {
 public:
  using Arguments = StatisticsArguments<T>;
  static constexpr int kVector = V;

  __device__ StatisticsTerms(const Arguments& arguments, const RowShape& shape, std::uint32_t group, std::uint32_t channel)
      : x_(arguments.x + channel),
        channels_(shape.channels),
        rows_(valid_in_group(shape, group, arguments.scalars) * shape.pixels) {
    const std::size_t first = std::size_t{group} * shape.group_size * shape.pixels * shape.channels;
    const Pack<T, V> pack = load<V>(x_ + first);
#pragma unroll
    for (int v = 0; v < V; ++v) shift_[v] = widen(pack.at[v]);
  }
  __device__ std::uint32_t rows() const { return rows_; }
  __device__ void add(std::uint32_t row, float (&a)[V], float (&b)[V]) const {
    const Pack<T, V> pack = load<V>(x_ + std::size_t{row} * channels_);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float difference = widen(pack.at[v]) - shift_[v];
      a[v] += difference;
      b[v] += difference * difference;
    }
  }

 private:
  const T* x_;
  std::uint32_t channels_, rows_;
  float shift_[V];
};

// A group without valid examples gets mean 0 and variance 1.
template <typename T>
struct FinishStatistics {
  StatisticsArguments<T> arguments;
  RowShape shape;
  float* mean;
  float* variance;

  __device__ void operator()(std::uint32_t group, std::uint32_t channel, double a, double b) const {
    const std::size_t out = std::size_t{group} * shape.channels + channel;
    const std::uint32_t valid = valid_in_group(shape, group, arguments.scalars);
    if (valid == 0) {
      mean[out] = 0;
      variance[out] = 1;
      return;
    }
    const double count = static_cast<double>(valid) * shape.pixels;
    const std::size_t first = std::size_t{group} * shape.group_size * shape.pixels * shape.channels;
    const double shift = widen(arguments.x[first + channel]);
    const double from_shift = a / count;
    mean[out] = static_cast<float>(shift + from_shift);
    const double spread = b / count - from_shift * from_shift;
    variance[out] = static_cast<float>(spread < 0 ? 0.0 : spread);  // a NaN stays one
  }
};

// The value that `apply` stores, before a ReLU.
template <typename T>
__device__ T applied(float normalized, float weight, float bias) {
  return narrow<T>(normalized * weight + bias);
}

// dy where `apply` stored a positive number; dy everywhere without a ReLU.
template <typename T, int V>
class ThroughRelu {
 public:
  __device__ ThroughRelu(const FusedRelu& relu, std::uint32_t channel) : active_(relu.weight != nullptr) {
    if (!active_) return;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      weight_[v] = relu.weight[channel + v];
      bias_[v] = relu.bias[channel + v];
    }
  }
  __device__ float operator()(int v, float dy, float normalized) const {
    return !active_ || widen(applied<T>(normalized, weight_[v], bias_[v])) > 0 ? dy : 0.0F;
  }

 private:
  bool active_;
  float weight_[V], bias_[V];
};

template <typename T, int V>
class Apply {
 public:
  using Arguments = ApplyOperands<T>;
  static constexpr int kVector = V;

  __device__ Apply(const Arguments& arguments, const RowShape& shape, std::uint32_t group, std::uint32_t channel)
      : statistics_(arguments.statistics, shape, group, channel),
        x_(arguments.x + channel),
        y_(arguments.y + channel),
        channels_(shape.channels),
        relu_(arguments.relu) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      weight_[v] = arguments.weight[channel + v];
      bias_[v] = arguments.bias[channel + v];
    }
  }
  __device__ void operator()(std::uint32_t row) const {
    const std::size_t at = std::size_t{row} * channels_;
    Pack<T, V> pack = load<V>(x_ + at);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const T value = applied<T>(statistics_.normalized(v, widen(pack.at[v])), weight_[v], bias_[v]);
      pack.at[v] = relu_ && widen(value) <= 0 ? narrow<T>(0.0F) : value;  // NaN passes
    }
    store<V>(y_ + at, pack);
  }

 private:
  ChannelStatistics<V> statistics_;
  const T* x_;
  T* y_;
  std::uint32_t channels_;
  bool relu_;
  float weight_[V], bias_[V];
};

// The groups update the running statistics in turn, rounded each time, as in the reference.
__global__ void __launch_bounds__(kThreads) running_kernel(RunningOperands o, double momentum, RowShape shape) {
  const std::uint32_t channel = blockIdx.x * kThreads + threadIdx.x;
  if (channel >= shape.channels) return;
  float mean = o.old_mean[channel];
  float variance = o.old_variance[channel];
  for (std::uint32_t group = 0; group < shape.groups; ++group) {
    const std::uint32_t valid = valid_in_group(shape, group, o.scalars);
    if (valid == 0) continue;
    const double share = static_cast<double>(valid) / (static_cast<double>(o.scalars->batch_examples) * shape.rows_per_example);
    const double decay = share == 1.0 ? momentum : 1.0 - pow(1.0 - momentum, share);
    const double count = static_cast<double>(valid) * shape.pixels;
    const std::size_t at = std::size_t{group} * shape.channels + channel;
    const double unbiased = count > 1 ? o.variance[at] * (count / (count - 1)) : double{o.variance[at]};
    mean = static_cast<float>((1.0 - decay) * mean + decay * o.mean[at]);
    variance = static_cast<float>((1.0 - decay) * variance + decay * unbiased);
  }
  o.running_mean[channel] = mean;
  o.running_variance[channel] = variance;
}

// Sums of dy * normalized x, and of dy. Padding counts: its dy is 0.
template <typename T, int V>
class GradTerms {
 public:
  using Arguments = GradReduceOperands<T>;
  static constexpr int kVector = V;

  __device__ GradTerms(const Arguments& arguments, const RowShape& shape, std::uint32_t group, std::uint32_t channel)
      : statistics_(arguments.statistics, shape, group, channel),
        through_relu_(arguments.relu, channel),
        dy_(arguments.dy + channel),
        x_(arguments.x + channel),
        channels_(shape.channels),
        rows_(examples_in_group(shape, group) * shape.pixels) {}
  __device__ std::uint32_t rows() const { return rows_; }
  __device__ void add(std::uint32_t row, float (&a)[V], float (&b)[V]) const {
    const std::size_t at = std::size_t{row} * channels_;
    const Pack<T, V> dy = load<V>(dy_ + at);
    const Pack<T, V> x = load<V>(x_ + at);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float normalized = statistics_.normalized(v, widen(x.at[v]));
      const float gradient = through_relu_(v, widen(dy.at[v]), normalized);
      a[v] += gradient * normalized;
      b[v] += gradient;
    }
  }

 private:
  ChannelStatistics<V> statistics_;
  ThroughRelu<T, V> through_relu_;
  const T* dy_;
  const T* x_;
  std::uint32_t channels_, rows_;
};

struct FinishTwo {
  float* first;
  float* second;
  std::uint32_t channels;

  __device__ void operator()(std::uint32_t group, std::uint32_t channel, double a, double b) const {
    const std::size_t out = std::size_t{group} * channels + channel;
    first[out] = static_cast<float>(a);
    second[out] = static_cast<float>(b);
  }
};

// dx = weight / deviation * (dy - mean of dy - normalized x * mean of dy * normalized x), the means over the group's valid
// elements; 0 for padding.
template <typename T, int V>
class GradInput {
 public:
  using Arguments = GradInputOperands<T>;
  static constexpr int kVector = V;

  __device__ GradInput(const Arguments& arguments, const RowShape& shape, std::uint32_t group, std::uint32_t channel)
      : statistics_(arguments.statistics, shape, group, channel),
        through_relu_(arguments.relu, channel),
        dy_(arguments.dy + channel),
        x_(arguments.x + channel),
        dx_(arguments.dx + channel),
        addend_(arguments.addend == nullptr ? nullptr : arguments.addend + channel),
        channels_(shape.channels) {
    const std::uint32_t valid = valid_in_group(shape, group, arguments.scalars);
    valid_end_ = (group * shape.group_size + valid) * shape.pixels;
    const float count = static_cast<float>(valid) * static_cast<float>(shape.pixels);
    const std::size_t sums = std::size_t{group} * shape.channels + channel;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      factor_[v] = arguments.weight[channel + v] * statistics_.inverse_deviation[v];
      mean_dy_[v] = arguments.bias_sums[sums + v] / count;
      mean_product_[v] = arguments.weight_sums[sums + v] / count;
    }
  }
  __device__ void operator()(std::uint32_t row) const {
    const std::size_t at = std::size_t{row} * channels_;
    const Pack<T, V> dy = load<V>(dy_ + at);
    const Pack<T, V> x = load<V>(x_ + at);
    Pack<T, V> dx;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float normalized = statistics_.normalized(v, widen(x.at[v]));
      const float centerd = through_relu_(v, widen(dy.at[v]), normalized) - mean_dy_[v] - normalized * mean_product_[v];
      dx.at[v] = narrow<T>(row < valid_end_ ? factor_[v] * centerd : 0.0F);
    }
    store_sum<V>(dx_, addend_, at, dx);
  }

 private:
  ChannelStatistics<V> statistics_;
  ThroughRelu<T, V> through_relu_;
  const T* dy_;
  const T* x_;
  T* dx_;
  const T* addend_;
  std::uint32_t channels_, valid_end_;
  float factor_[V], mean_dy_[V], mean_product_[V];
};

template <typename T>
struct GradFixedArguments {
  const T* dy;
  const float* variance;
  const float* weight;
  float epsilon;
  T* dx;
  const T* addend;
};

template <typename T, int V>
class GradFixed {
 public:
  using Arguments = GradFixedArguments<T>;
  static constexpr int kVector = V;

  __device__ GradFixed(const Arguments& arguments, const RowShape& shape, std::uint32_t /*group*/, std::uint32_t channel)
      : dy_(arguments.dy + channel),
        dx_(arguments.dx + channel),
        addend_(arguments.addend == nullptr ? nullptr : arguments.addend + channel),
        channels_(shape.channels) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      factor_[v] = arguments.weight[channel + v] / sqrtf(arguments.variance[channel + v] + arguments.epsilon);
    }
  }
  __device__ void operator()(std::uint32_t row) const {
    const std::size_t at = std::size_t{row} * channels_;
    Pack<T, V> pack = load<V>(dy_ + at);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(widen(pack.at[v]) * factor_[v]);
    store_sum<V>(dx_, addend_, at, pack);
  }

 private:
  const T* dy_;
  T* dx_;
  const T* addend_;
  std::uint32_t channels_;
  float factor_[V];
};

}  // namespace

template <typename T>
void batch_norm_statistics(cudaStream_t stream, const T* x, const Scalars* scalars, float* mean, float* variance,
                           const RowShape& shape, const ColumnSums& sums, float* partial) {
  const StatisticsArguments<T> arguments{x, scalars};
  const FinishStatistics<T> finish{arguments, shape, mean, variance};
  constexpr const char* kName = "cuda_batch_norm_statistics";
  if (sums.tiling.vector == 1) {
    launch_sums<StatisticsTerms<T, 1>>(stream, arguments, finish, shape, sums, partial, kName);
  } else {
    launch_sums<StatisticsTerms<T, kPack<T>>>(stream, arguments, finish, shape, sums, partial, kName);
  }
}

template <typename T>
void batch_norm_apply(cudaStream_t stream, const ApplyOperands<T>& operands, const RowShape& shape, const ColumnTiling& tiling) {
  constexpr const char* kName = "cuda_batch_norm_apply";
  if (tiling.vector == 1) {
    launch_map_rows<Apply<T, 1>>(stream, operands, shape, tiling, kName);
  } else {
    launch_map_rows<Apply<T, kPack<T>>>(stream, operands, shape, tiling, kName);
  }
}

void batch_norm_running(cudaStream_t stream, const RunningOperands& operands, double momentum, const RowShape& shape) {
  running_kernel<<<blocks_for(shape.channels), kThreads, 0, stream>>>(operands, momentum, shape);
  check_launch("cuda_batch_norm_running");
}

template <typename T>
void batch_norm_grad_reduce(cudaStream_t stream, const GradReduceOperands<T>& operands, float* weight_sums, float* bias_sums,
                            const RowShape& shape, const ColumnSums& sums, float* partial) {
  const FinishTwo finish{weight_sums, bias_sums, shape.channels};
  constexpr const char* kName = "cuda_batch_norm_grad_reduce";
  if (sums.tiling.vector == 1) {
    launch_sums<GradTerms<T, 1>>(stream, operands, finish, shape, sums, partial, kName);
  } else {
    launch_sums<GradTerms<T, kPack<T>>>(stream, operands, finish, shape, sums, partial, kName);
  }
}

template <typename T>
void batch_norm_grad_input(cudaStream_t stream, const GradInputOperands<T>& operands, const RowShape& shape,
                           const ColumnTiling& tiling) {
  constexpr const char* kName = "cuda_batch_norm_grad_input";
  if (tiling.vector == 1) {
    launch_map_rows<GradInput<T, 1>>(stream, operands, shape, tiling, kName);
  } else {
    launch_map_rows<GradInput<T, kPack<T>>>(stream, operands, shape, tiling, kName);
  }
}

template <typename T>
void batch_norm_grad_fixed(cudaStream_t stream, const T* dy, const float* variance, const float* weight, float epsilon, T* dx,
                           const T* addend, const RowShape& shape, const ColumnTiling& tiling) {
  const GradFixedArguments<T> arguments{dy, variance, weight, epsilon, dx, addend};
  constexpr const char* kName = "cuda_batch_norm_grad_fixed";
  if (tiling.vector == 1) {
    launch_map_rows<GradFixed<T, 1>>(stream, arguments, shape, tiling, kName);
  } else {
    launch_map_rows<GradFixed<T, kPack<T>>>(stream, arguments, shape, tiling, kName);
  }
}

template void batch_norm_statistics(cudaStream_t, const float*, const Scalars*, float*, float*, const RowShape&,
                                    const ColumnSums&, float*);
template void batch_norm_statistics(cudaStream_t, const __half*, const Scalars*, float*, float*, const RowShape&,
                                    const ColumnSums&, float*);
template void batch_norm_statistics(cudaStream_t, const __nv_bfloat16*, const Scalars*, float*, float*, const RowShape&,
                                    const ColumnSums&, float*);
template void batch_norm_apply(cudaStream_t, const ApplyOperands<float>&, const RowShape&, const ColumnTiling&);
template void batch_norm_apply(cudaStream_t, const ApplyOperands<__half>&, const RowShape&, const ColumnTiling&);
template void batch_norm_apply(cudaStream_t, const ApplyOperands<__nv_bfloat16>&, const RowShape&, const ColumnTiling&);
template void batch_norm_grad_reduce(cudaStream_t, const GradReduceOperands<float>&, float*, float*, const RowShape&,
                                     const ColumnSums&, float*);
template void batch_norm_grad_reduce(cudaStream_t, const GradReduceOperands<__half>&, float*, float*, const RowShape&,
                                     const ColumnSums&, float*);
template void batch_norm_grad_reduce(cudaStream_t, const GradReduceOperands<__nv_bfloat16>&, float*, float*, const RowShape&,
                                     const ColumnSums&, float*);
template void batch_norm_grad_input(cudaStream_t, const GradInputOperands<float>&, const RowShape&, const ColumnTiling&);
template void batch_norm_grad_input(cudaStream_t, const GradInputOperands<__half>&, const RowShape&, const ColumnTiling&);
template void batch_norm_grad_input(cudaStream_t, const GradInputOperands<__nv_bfloat16>&, const RowShape&, const ColumnTiling&);
template void batch_norm_grad_fixed(cudaStream_t, const float*, const float*, const float*, float, float*, const float*,
                                    const RowShape&, const ColumnTiling&);
template void batch_norm_grad_fixed(cudaStream_t, const __half*, const float*, const float*, float, __half*, const __half*,
                                    const RowShape&, const ColumnTiling&);
template void batch_norm_grad_fixed(cudaStream_t, const __nv_bfloat16*, const float*, const float*, float, __nv_bfloat16*,
                                    const __nv_bfloat16*, const RowShape&, const ColumnTiling&);

}  // namespace snug::backends::cuda::launch
