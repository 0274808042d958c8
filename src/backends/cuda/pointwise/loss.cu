#include "backends/cuda/device_code.cuh"
#include "backends/cuda/pointwise/loss.h"

// A warp processes a row; lane l reads the classes l, l + 32, ... The target of a row is (1 - smoothing) at its label plus
// smoothing / classes everywhere. A label outside of [0, classes) on a row with a weight above 0 means corrupt data: the loss and
// that row's gradient become NaN, which stops a run.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr unsigned kLossWarps = 32;                // of the one block that sums the losses
constexpr unsigned kGradWarps = kThreads / kWarp;  // rows of a block

// Every lane gets the same result, added in the same order each time.
__device__ inline double sum_of_warp(double value) {
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}
__device__ inline float max_of_warp(float value) {
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

// log of the sum of exponentials of a row; the largest is subtracted, so that none overflows. A NaN among the logits makes it
// NaN: fmaxf ignores it, but its own exponential does not.
template <typename T>
__device__ double log_sum_exp(const T* row, std::uint32_t classes, unsigned lane) {
  float largest = -INFINITY;
  for (std::uint32_t k = lane; k < classes; k += kWarp) largest = fmaxf(largest, widen(row[k]));
  largest = max_of_warp(largest);
  double sum = 0;
  for (std::uint32_t k = lane; k < classes; k += kWarp) sum += static_cast<double>(expf(widen(row[k]) - largest));
  return largest + log(sum_of_warp(sum));
}

// The weight of row n: 0 after the valid examples.
__device__ inline double weight_of(const LossRows& rows, std::uint32_t n) {
  if (n >= std::uint64_t{rows.scalars->valid_examples} * rows.rows_per_example) return 0;
  return rows.weights == nullptr ? 1.0 : double{rows.weights[n]};
}

__device__ inline double not_a_number() { return __longlong_as_double(0x7FF8000000000000LL); }

// One block: its result is one sum.
template <typename T>
__global__ void __launch_bounds__(kLossWarps* kWarp) loss_kernel(const T* logits, LossRows rows, Metrics* metrics) {
  __shared__ double losses[kLossWarps];
  __shared__ double scores[kLossWarps];
  __shared__ double weights[kLossWarps];
  const std::uint32_t classes = rows.classes;
  const double smoothing = rows.smoothing;
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  Metrics sum;
  for (std::uint32_t n = warp; n < rows.rows; n += kLossWarps) {
    const double weight = weight_of(rows, n);
    if (weight == 0) continue;  // the whole warp
    sum.weight += weight;
    const T* row = logits + std::size_t{n} * classes;
    const std::int64_t label = rows.labels[n];
    if (label < 0 || label >= classes) {
      sum.loss += not_a_number();
      continue;
    }
    const double log_sum = log_sum_exp(row, classes, lane);
    const float at_label = widen(row[label]);
    // The first of equals counts as the largest; with a NaN none does.
    bool largest = true;
    double from_log_sum = 0;  // sum over classes of log_sum - logit, for smoothing
    for (std::uint32_t k = lane; k < classes; k += kWarp) {
      const float logit = widen(row[k]);
      largest = largest && (k < label ? at_label > logit : at_label >= logit);
      from_log_sum += log_sum - logit;
    }
    const bool wins = __all_sync(kAll, largest) != 0;
    const double spread = sum_of_warp(from_log_sum);
    sum.loss += weight * ((1.0 - smoothing) * (log_sum - at_label));
    if (smoothing > 0) sum.loss += weight * (smoothing / classes * spread);
    sum.score += wins ? weight : 0.0;
  }
  if (lane == 0) {
    losses[warp] = sum.loss;
    scores[warp] = sum.score;
    weights[warp] = sum.weight;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  Metrics total;
  for (unsigned w = 0; w < kLossWarps; ++w) {
    total.loss += losses[w];
    total.score += scores[w];
    total.weight += weights[w];
  }
  if (total.weight != 0) total.loss /= rows.scalars->total_weight;
  *metrics = total;
}

// (softmax - target) * weight * loss_scale / total_weight; 0 where a row's weight is 0. A lane reads and writes the same
// elements, so each logit is read for the last time before its gradient overwrites it.
template <typename T>
__global__ void __launch_bounds__(kThreads) grad_kernel(const T* logits, LossRows rows, T* gradient) {
  const std::uint32_t classes = rows.classes;
  const double smoothing = rows.smoothing;
  const unsigned lane = threadIdx.x % kWarp;
  const std::uint32_t n = blockIdx.x * kGradWarps + threadIdx.x / kWarp;
  if (n >= rows.rows) return;  // the whole warp
  const T* row = logits + std::size_t{n} * classes;
  T* out = gradient + std::size_t{n} * classes;
  const double weight = weight_of(rows, n);
  if (weight == 0) {
    for (std::uint32_t k = lane; k < classes; k += kWarp) out[k] = narrow<T>(0.0F);
    return;
  }
  const std::int64_t label = rows.labels[n];
  const bool possible = label >= 0 && label < classes;
  const double scale = weight * (rows.scalars->loss_scale / rows.scalars->total_weight);
  const double log_sum = log_sum_exp(row, classes, lane);
  for (std::uint32_t k = lane; k < classes; k += kWarp) {
    const double target = smoothing / classes + (k == label ? 1.0 - smoothing : 0.0);
    const double difference = exp(widen(row[k]) - log_sum) - target;
    out[k] = narrow<T>(possible ? difference * scale : not_a_number());
  }
}

}  // namespace

template <typename T>
void softmax_cross_entropy(cudaStream_t stream, const T* logits, const LossRows& rows, Metrics* metrics) {
  loss_kernel<<<1, kLossWarps * kWarp, 0, stream>>>(logits, rows, metrics);
  check_launch("cuda_softmax_cross_entropy");
}

template <typename T>
void softmax_cross_entropy_grad(cudaStream_t stream, const T* logits, const LossRows& rows, T* gradient) {
  grad_kernel<<<blocks_for(rows.rows, kGradWarps), kThreads, 0, stream>>>(logits, rows, gradient);
  check_launch("cuda_softmax_cross_entropy_grad");
}

#define SNUG_INSTANTIATE(T)                                                               \
  template void softmax_cross_entropy(cudaStream_t, const T*, const LossRows&, Metrics*); \
  template void softmax_cross_entropy_grad(cudaStream_t, const T*, const LossRows&, T*)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
