#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/block.cuh"
#include "backends/cuda/sequence/classifier_loss.h"

// A block processes a row. The target of a row is (1 - smoothing) at its label plus smoothing / classes everywhere.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kMostThreads = 512;
constexpr unsigned kMostWarps = kMostThreads / kWarp;
constexpr int kFour = 4;

// Depends on the number of classes alone, so the order of a sum does too.
unsigned threads_for(std::uint32_t classes) { return classes >= 4096 ? kMostThreads : 128; }

// 0 after the valid examples, and where the label is no class.
__device__ float weight_of(const ClassifierRows& rows, std::uint32_t row) {
  if (row >= std::uint64_t{rows.scalars->valid_examples} * rows.rows_per_example) return 0;
  if (static_cast<std::uint32_t>(rows.labels[row]) >= rows.classes) return 0;  // a negative one is large
  return rows.weights == nullptr ? 1.0F : rows.weights[row];
}

// The largest logit and the sum of exponentials relative to it, brought to a new largest as they come.
struct Exponentials {
  float largest = -INFINITY;
  float sum = 0;

  template <int V>
  __device__ void add(const Pack<float, V>& x) {
    float most = x.at[0];
#pragma unroll
    for (int v = 1; v < V; ++v) most = fmaxf(most, x.at[v]);
    if (most > largest) {
      sum *= expf(largest - most);
      largest = most;
    }
    // A NaN among them makes the sum NaN: fmaxf ignores it, its exponential does not.
#pragma unroll
    for (int v = 0; v < V; ++v) sum += expf(x.at[v] - largest);
  }
};

// The whole block has the row's loss afterwards.
__device__ RowLoss loss_of_row(const float* x, const ClassifierRows& rows, std::uint32_t row, float weight) {
  __shared__ double shared[kMostWarps];
  const std::uint32_t classes = rows.classes;
  const auto label = static_cast<std::uint32_t>(rows.labels[row]);
  const float of_label = x[label];
  Exponentials exponentials;
  float logits = 0;
  bool largest = true;  // the first of equals counts; with a NaN none does
  const auto look_at = [&](std::uint32_t k, float logit) {
    logits += logit;
    largest = largest && (k < label ? of_label > logit : of_label >= logit);
  };
  for (std::uint32_t k = threadIdx.x * kFour; k < classes; k += blockDim.x * kFour) {
    if (k + kFour <= classes) {
      const Pack<float, kFour> pack = load<kFour>(x + k);
      exponentials.add(pack);
#pragma unroll
      for (int v = 0; v < kFour; ++v) look_at(k + v, pack.at[v]);
    } else {
      for (std::uint32_t i = k; i < classes; ++i) {
        exponentials.add(Pack<float, 1>{x[i]});
        look_at(i, x[i]);
      }
    }
  }
  const float most = max_of_block(exponentials.largest, shared);
  // A thread without logits adds nothing: its largest is minus infinity.
  const double sum = sum_of_block(double{exponentials.sum} * double{expf(exponentials.largest - most)}, shared);
  const double log_sum_exp = most + log(sum);
  double loss = (1.0 - rows.smoothing) * (log_sum_exp - of_label);
  if (rows.smoothing > 0) loss += rows.smoothing * (log_sum_exp - sum_of_block(logits, shared) / classes);
  const bool wins = __syncthreads_or(largest ? 0 : 1) == 0;
  const auto rounded = static_cast<float>(log_sum_exp);
  return {.loss = weight * loss,
          .weight = weight,
          .score = wins ? weight : 0.0F,
          .log_sum_exp = rounded,
          .rounded_off = static_cast<float>(log_sum_exp - rounded)};
}

// (softmax - target) * weight * loss_scale / total_weight of the classes from `first_class` on, in the bytes of their logits. A
// gradient of 16 bits lies where another thread's logit was, so all threads read before any writes.
template <typename T>
__device__ void write_gradients(float* x, const ClassifierRows& rows, std::uint32_t row, const RowLoss& loss,
                                std::uint32_t first_class, std::uint32_t classes) {
  T* gradient = reinterpret_cast<T*>(x);
  const auto label = static_cast<std::uint32_t>(rows.labels[row]);
  const auto scale = static_cast<float>(double{loss.weight} * (rows.scalars->loss_scale / rows.scalars->total_weight));
  const auto elsewhere = static_cast<float>(rows.smoothing / rows.classes);
  const auto at_label = static_cast<float>(rows.smoothing / rows.classes + (1.0 - rows.smoothing));
  const bool counts = loss.weight != 0;  // otherwise the logits are not looked at
  const auto gradient_of = [&](std::uint32_t k, float logit) {
    const float softmax = expf((logit - loss.log_sum_exp) - loss.rounded_off);
    return narrow<T>(counts ? (softmax - (first_class + k == label ? at_label : elsewhere)) * scale : 0.0F);
  };
  const std::uint32_t step = blockDim.x * kFour;
  for (std::uint32_t begin = 0; begin < classes; begin += step) {  // the same for the whole block
    const std::uint32_t k = begin + threadIdx.x * kFour;
    const std::uint32_t count = k >= classes ? 0 : min(static_cast<std::uint32_t>(kFour), classes - k);
    Pack<float, kFour> pack{};
    if (count == kFour) {
      pack = load<kFour>(x + k);
    } else {
#pragma unroll
      for (int v = 0; v < kFour; ++v) {
        if (static_cast<std::uint32_t>(v) < count) pack.at[v] = x[k + v];
      }
    }
    __syncthreads();
    Pack<T, kFour> result;
#pragma unroll
    for (int v = 0; v < kFour; ++v) result.at[v] = gradient_of(k + v, pack.at[v]);
    if (count == kFour) {
      store<kFour>(gradient + k, result);
    } else {
#pragma unroll
      for (int v = 0; v < kFour; ++v) {
        if (static_cast<std::uint32_t>(v) < count) gradient[k + v] = result.at[v];
      }
    }
  }
}

template <typename T, bool kWritesGradients>
__global__ void __launch_bounds__(kMostThreads) losses_kernel(LogitRows logits, ClassifierRows rows, RowLoss* losses) {
  float* x = logits.logits + std::size_t{blockIdx.x} * logits.stride;
  const std::uint32_t row = logits.first_row + blockIdx.x;
  const float weight = weight_of(rows, row);
  RowLoss loss{};
  if (weight != 0) loss = loss_of_row(x, rows, row, weight);  // the whole block
  if (threadIdx.x == 0) losses[row] = loss;
  if constexpr (kWritesGradients) {
    __syncthreads();  // the label's logit was read by all
    write_gradients<T>(x, rows, row, loss, 0, rows.classes);
  }
}

template <typename T>
__global__ void __launch_bounds__(kMostThreads)
    gradients_kernel(LogitRows logits, std::uint32_t first_class, std::uint32_t classes, ClassifierRows rows,
                     const RowLoss* losses) {
  const std::uint32_t row = logits.first_row + blockIdx.x;
  write_gradients<T>(logits.logits + std::size_t{blockIdx.x} * logits.stride, rows, row, losses[row], first_class, classes);
}

constexpr unsigned kMetricsThreads = 512;

__global__ void __launch_bounds__(kMetricsThreads) metrics_kernel(const RowLoss* losses, ClassifierRows rows, Metrics* metrics) {
  __shared__ double shared[3][kMetricsThreads];
  double sums[3] = {};  // of losses, scores and weights
  for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kMetricsThreads) {
    const RowLoss of_row = losses[row];
    if (of_row.weight == 0) continue;
    sums[0] += of_row.loss;
    sums[1] += of_row.score;
    sums[2] += of_row.weight;
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) shared[i][threadIdx.x] = sums[i];
  for (unsigned half = kMetricsThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
#pragma unroll
    for (int i = 0; i < 3; ++i) shared[i][threadIdx.x] += shared[i][threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  const double weight = shared[2][0];
  metrics->loss = weight != 0 ? shared[0][0] / rows.scalars->total_weight : shared[0][0];
  metrics->score = shared[1][0];
  metrics->weight = weight;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) round_kernel(const float* sum, const T* addend, T* result, std::uint32_t count) {
  constexpr int V = kPack<T>;
  const std::uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * static_cast<std::uint32_t>(V);
  if (first + V <= count) {
    const Pack<float, V> sums = load<V>(sum + first);
    Pack<T, V> rounded;
#pragma unroll
    for (int v = 0; v < V; ++v) rounded.at[v] = narrow<T>(sums.at[v]);
    store_sum<V>(result, addend, first, rounded);
  } else {
    for (std::uint32_t i = first; i < count; ++i) result[i] = add_to(addend, i, narrow<T>(sum[i]));
  }
}

}  // namespace

void classifier_losses(cudaStream_t stream, const LogitRows& logits, const ClassifierRows& rows, RowLoss* losses) {
  losses_kernel<float, false><<<logits.count, threads_for(rows.classes), 0, stream>>>(logits, rows, losses);
  check_launch("cuda_classifier_losses");
}

template <typename T>
void classifier_losses_and_gradients(cudaStream_t stream, const LogitRows& logits, const ClassifierRows& rows, RowLoss* losses) {
  losses_kernel<T, true><<<logits.count, threads_for(rows.classes), 0, stream>>>(logits, rows, losses);
  check_launch("cuda_classifier_losses_and_gradients");
}

template <typename T>
void classifier_gradients(cudaStream_t stream, const LogitRows& logits, std::uint32_t first_class, std::uint32_t classes,
                          const ClassifierRows& rows, const RowLoss* losses) {
  gradients_kernel<T><<<logits.count, threads_for(classes), 0, stream>>>(logits, first_class, classes, rows, losses);
  check_launch("cuda_classifier_gradients");
}

void classifier_metrics(cudaStream_t stream, const RowLoss* losses, const ClassifierRows& rows, Metrics* metrics) {
  metrics_kernel<<<1, kMetricsThreads, 0, stream>>>(losses, rows, metrics);
  check_launch("cuda_classifier_metrics");
}

template <typename T>
void round_sum(cudaStream_t stream, const float* sum, const T* addend, T* result, std::int64_t count) {
  round_kernel<<<blocks_for(count, kThreads * kPack<T>), kThreads, 0, stream>>>(sum, addend, result,
                                                                                static_cast<std::uint32_t>(count));
  check_launch("cuda_round_sum");
}

#define SNUG_INSTANTIATE(T)                                                                                                  \
  template void classifier_losses_and_gradients<T>(cudaStream_t, const LogitRows&, const ClassifierRows&, RowLoss*);         \
  template void classifier_gradients<T>(cudaStream_t, const LogitRows&, std::uint32_t, std::uint32_t, const ClassifierRows&, \
                                        const RowLoss*);                                                                     \
  template void round_sum(cudaStream_t, const float*, const T*, T*, std::int64_t)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
