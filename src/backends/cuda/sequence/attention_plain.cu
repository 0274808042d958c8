#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/attention.h"
#include "backends/cuda/sequence/attention_rules.cuh"
#include "backends/cuda/sequence/warp.cuh"

// A warp takes 32 keys (or queries) at a time: each lane computes the score of one of them, and then all lanes add up what these
// contribute to the columns of a head, lane l to the columns l, l + 32, ...

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kWarpsPerBlock = 4;
constexpr unsigned kBlock = kWarpsPerBlock * kWarp;
constexpr int kColumnsPerLane = kMostHeadSize / kWarp;

// Where the heads of a row lie.
struct Heads {
  std::uint32_t query_width, key_width, first_key_column, heads, kv_heads, size;

  __device__ explicit Heads(const AttentionShape& shape)
      : query_width(shape.query_width),
        key_width(shape.key_width),
        first_key_column(shape.first_key_column),
        heads(shape.heads),
        kv_heads(shape.kv_heads),
        size(shape.head_size) {}

  // Numbers of the first column; the same for gradients.
  __device__ std::size_t query(std::uint32_t row, std::uint32_t head) const {
    return std::size_t{row} * query_width + head * size;
  }
  __device__ std::size_t key(std::uint32_t key_row, std::uint32_t kv_head) const {
    return std::size_t{key_row} * key_width + first_key_column + kv_head * size;
  }
  __device__ std::size_t value(std::uint32_t key_row, std::uint32_t kv_head) const { return key(key_row, kv_heads + kv_head); }
  // Of y and dy.
  __device__ std::size_t result(std::uint32_t row, std::uint32_t head) const { return (std::size_t{row} * heads + head) * size; }
  __device__ std::uint32_t kv_head_of(std::uint32_t head) const { return head / (heads / kv_heads); }
};

// The warp's copy of a head, in float.
using Row = float[kMostHeadSize];

template <typename T>
__device__ void keep(Row& to, const T* from, std::uint32_t size, unsigned lane) {
  for (std::uint32_t c = lane; c < size; c += kWarp) to[c] = widen(from[c]);
  __syncwarp();
}

template <typename T>
__device__ float dot(const Row& a, const T* b, std::uint32_t size) {
  float sum = 0;
  for (std::uint32_t c = 0; c < size; ++c) sum = fmaf(a[c], widen(b[c]), sum);
  return sum;
}

// Sums over columns that the lanes divide among them.
struct LaneSums {
  float at[kColumnsPerLane] = {};

  __device__ void scale(float factor) {
#pragma unroll
    for (int i = 0; i < kColumnsPerLane; ++i) at[i] *= factor;
  }
  template <typename T>
  __device__ void add(float factor, const T* from, std::uint32_t size, unsigned lane) {
#pragma unroll
    for (int i = 0; i < kColumnsPerLane; ++i) {
      const std::uint32_t c = lane + static_cast<std::uint32_t>(i) * kWarp;
      if (c < size) at[i] = fmaf(factor, widen(from[c]), at[i]);
    }
  }
  template <typename T>
  __device__ void write(T* to, float factor, std::uint32_t size, unsigned lane) const {
#pragma unroll
    for (int i = 0; i < kColumnsPerLane; ++i) {
      const std::uint32_t c = lane + static_cast<std::uint32_t>(i) * kWarp;
      if (c < size) to[c] = narrow<T>(at[i] * factor);
    }
  }
};

// What a warp works on: item (blockIdx.x, warp) is a row, of `length` of each example, and one of `heads` heads.
struct Place {
  std::uint32_t row, head, example;
  int position;
  unsigned lane, warp;
  bool inside;

  __device__ Place(std::uint32_t examples, std::uint32_t length, std::uint32_t heads)
      : lane(threadIdx.x % kWarp), warp(threadIdx.x / kWarp) {
    const std::uint64_t item = std::uint64_t{blockIdx.x} * kWarpsPerBlock + warp;
    inside = item < std::uint64_t{examples} * length * heads;
    row = static_cast<std::uint32_t>(item / heads);
    head = static_cast<std::uint32_t>(item % heads);
    example = row / length;
    position = static_cast<int>(row % length);
  }
};

// The largest score so far, and the sum of exponentials relative to it, over all lanes.
struct Softmax {
  float largest = -INFINITY;
  float sum = 0;

  // A score for each lane, minus infinity for none; returns its exponential. `before` is what earlier ones must be scaled by.
  __device__ float add(float score, float& before) {
    const float most = fmaxf(largest, max_of_warp(score));
    const float center = most == -INFINITY ? 0.0F : most;
    before = expf(largest - center);
    const float exponential = expf(score - center);
    sum = sum * before + sum_of_warp(exponential);
    largest = most;
    return exponential;
  }
  __device__ float log_sum_exp() const { return sum == 0.0F ? kNothingSeen : largest + logf(sum); }
};

template <typename T>
__global__ void __launch_bounds__(kBlock) forward_kernel(AttentionOperands<T> o, AttentionShape shape, AttentionRule rule) {
  __shared__ Row queries[kWarpsPerBlock];
  const Place place(shape.examples, shape.length, shape.heads);
  if (!place.inside) return;  // the whole warp
  const Heads at(shape);
  const std::uint32_t kv_head = at.kv_head_of(place.head);
  const std::uint32_t first_key_row = place.example * shape.key_length;
  Row& query = queries[place.warp];
  keep(query, o.queries + at.query(place.row, place.head), at.size, place.lane);
  const int seen = keys_seen(place.position, keys_of_example(shape, rule, place.example), shape.causal);
  const AttentionDraws draws(shape, rule, place.example, place.head);
  Softmax softmax;
  LaneSums sums;
  for (int begin = 0; begin < seen; begin += kWarp) {
    const int key = begin + static_cast<int>(place.lane);
    float score = -INFINITY;
    if (key < seen) score = rule.scale * dot(query, o.keys + at.key(first_key_row + key, kv_head), at.size);
    float before = 0;
    float probability = softmax.add(score, before);
    if (rule.drops && key < seen && !draws.keeps(draws.word(place.position, key))) probability = 0;
    sums.scale(before);
    const int count = min(seen - begin, static_cast<int>(kWarp));
    for (int i = 0; i < count; ++i) {
      const float factor = __shfl_sync(kAllLanes, probability, i);
      sums.add(factor, o.keys + at.value(first_key_row + begin + i, kv_head), at.size, place.lane);
    }
  }
  const float factor = softmax.sum == 0.0F ? 0.0F : (rule.drops ? rule.kept : 1.0F) / softmax.sum;
  sums.write(o.y + at.result(place.row, place.head), factor, at.size, place.lane);
  if (place.lane == 0) o.log_sum_exp[std::size_t{place.row} * shape.heads + place.head] = softmax.log_sum_exp();
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    probabilities_kernel(const T* qkv, T* probabilities, AttentionShape shape, AttentionRule rule) {
  __shared__ Row queries[kWarpsPerBlock];
  const Place place(shape.examples, shape.length, shape.heads);
  if (!place.inside) return;  // the whole warp
  const Heads at(shape);
  const std::uint32_t kv_head = at.kv_head_of(place.head);
  const std::uint32_t first_key_row = place.example * shape.key_length;
  Row& query = queries[place.warp];
  keep(query, qkv + at.query(place.row, place.head), at.size, place.lane);
  const int seen = keys_seen(place.position, keys_of_example(shape, rule, place.example), shape.causal);
  const auto score_of = [&](int key) {
    return key < seen ? rule.scale * dot(query, qkv + at.key(first_key_row + key, kv_head), at.size) : -INFINITY;
  };
  Softmax softmax;
  for (int begin = 0; begin < seen; begin += kWarp) {
    float before = 0;
    softmax.add(score_of(begin + static_cast<int>(place.lane)), before);
  }
  const float log_sum_exp = softmax.log_sum_exp();
  T* to = probabilities + (std::size_t{place.row} * shape.heads + place.head) * shape.key_length;
  for (int key = static_cast<int>(place.lane); key < static_cast<int>(shape.key_length); key += kWarp)
    to[key] = narrow<T>(key < seen ? expf(score_of(key) - log_sum_exp) : 0.0F);
}

// Of one pair of a query and a key: the gradient of its score, without the scale, and the probability after dropout.
struct Pair {
  float score, dropped;
};

// The gradient of a pair from the product of their vectors and that of dy with the value.
template <typename T>
struct PairGradient {
  const AttentionGradOperands<T>& o;
  const AttentionRule& rule;
  std::uint32_t key_length;

  __device__ float probability(std::size_t query_head, int key, float product) const {
    if (o.probabilities != nullptr) return widen(o.probabilities[query_head * key_length + static_cast<std::size_t>(key)]);
    return expf(rule.scale * product - o.log_sum_exp[query_head]);
  }
  __device__ float kept(const AttentionDraws& draws, int query, int key) const {
    return !rule.drops ? 1.0F : draws.keeps(draws.word(query, key)) ? rule.kept : 0.0F;
  }
};

// dq, and for the keys dy times y: from y, or from the probabilities as the sum over the keys of p * dp.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    query_grad_kernel(AttentionGradOperands<T> o, AttentionShape shape, AttentionRule rule) {
  __shared__ Row queries[kWarpsPerBlock];
  __shared__ Row gradients[kWarpsPerBlock];
  const Place place(shape.examples, shape.length, shape.heads);
  if (!place.inside) return;  // the whole warp
  const Heads at(shape);
  const std::uint32_t kv_head = at.kv_head_of(place.head);
  const std::uint32_t first_key_row = place.example * shape.key_length;
  const std::size_t query_head = std::size_t{place.row} * shape.heads + place.head;
  Row& query = queries[place.warp];
  Row& gradient = gradients[place.warp];
  keep(query, o.queries + at.query(place.row, place.head), at.size, place.lane);
  keep(gradient, o.dy + at.result(place.row, place.head), at.size, place.lane);
  const int seen = keys_seen(place.position, keys_of_example(shape, rule, place.example), shape.causal);
  const AttentionDraws draws(shape, rule, place.example, place.head);
  const PairGradient<T> pair{o, rule, shape.key_length};
  const auto probability_of = [&](int key) {
    const float product = o.probabilities != nullptr ? 0.0F : dot(query, o.keys + at.key(first_key_row + key, kv_head), at.size);
    return pair.probability(query_head, key, product);
  };
  const auto of_probability = [&](int key) {
    return dot(gradient, o.keys + at.value(first_key_row + key, kv_head), at.size) * pair.kept(draws, place.position, key);
  };

  float sum = 0;
  if (o.y != nullptr) {
    const T* y = o.y + at.result(place.row, place.head);
    for (std::uint32_t c = place.lane; c < at.size; c += kWarp) sum = fmaf(gradient[c], widen(y[c]), sum);
  } else {
    for (int key = static_cast<int>(place.lane); key < seen; key += kWarp)
      sum = fmaf(probability_of(key), of_probability(key), sum);
  }
  sum = sum_of_warp(sum);
  if (place.lane == 0) o.dy_times_y[query_head] = sum;

  LaneSums sums;
  for (int begin = 0; begin < seen; begin += kWarp) {
    const int key = begin + static_cast<int>(place.lane);
    float score = 0;
    if (key < seen) score = probability_of(key) * (of_probability(key) - sum);
    const int count = min(seen - begin, static_cast<int>(kWarp));
    for (int i = 0; i < count; ++i) {
      const float factor = __shfl_sync(kAllLanes, score, i);
      sums.add(factor, o.keys + at.key(first_key_row + begin + i, kv_head), at.size, place.lane);
    }
  }
  sums.write(o.dqueries + at.query(place.row, place.head), rule.scale, at.size, place.lane);
}

// dk and dv of a row's key head: over the query heads that share it in order, and their queries in order.
template <typename T>
__global__ void __launch_bounds__(kBlock) key_grad_kernel(AttentionGradOperands<T> o, AttentionShape shape, AttentionRule rule) {
  __shared__ Row keys[kWarpsPerBlock];
  __shared__ Row values[kWarpsPerBlock];
  const Place place(shape.examples, shape.key_length, shape.kv_heads);
  if (!place.inside) return;  // the whole warp
  const Heads at(shape);
  const std::uint32_t first_row = place.example * shape.length;
  Row& key = keys[place.warp];
  Row& value = values[place.warp];
  keep(key, o.keys + at.key(place.row, place.head), at.size, place.lane);
  keep(value, o.keys + at.value(place.row, place.head), at.size, place.lane);
  const int length = static_cast<int>(shape.length);
  const bool counts = place.position < keys_of_example(shape, rule, place.example);
  const int first_query = !counts ? length : shape.causal ? place.position : 0;
  const PairGradient<T> pair{o, rule, shape.key_length};
  const std::uint32_t group = shape.heads / shape.kv_heads;
  LaneSums for_key;
  LaneSums for_value;
  for (std::uint32_t head = place.head * group; head < (place.head + 1) * group; ++head) {
    const AttentionDraws draws(shape, rule, place.example, head);
    for (int begin = first_query; begin < length; begin += kWarp) {
      const int query = begin + static_cast<int>(place.lane);
      Pair gradient{0, 0};
      if (query < length) {
        const std::uint32_t row = first_row + query;
        const std::size_t query_head = std::size_t{row} * shape.heads + head;
        const float product = o.probabilities != nullptr ? 0.0F : dot(key, o.queries + at.query(row, head), at.size);
        const float probability = pair.probability(query_head, place.position, product);
        const float kept = pair.kept(draws, query, place.position);
        const float of_probability = dot(value, o.dy + at.result(row, head), at.size) * kept;
        gradient = {probability * (of_probability - o.dy_times_y[query_head]), probability * kept};
      }
      const int count = min(length - begin, static_cast<int>(kWarp));
      for (int i = 0; i < count; ++i) {
        const float score = __shfl_sync(kAllLanes, gradient.score, i);
        const float dropped = __shfl_sync(kAllLanes, gradient.dropped, i);
        for_key.add(score, o.queries + at.query(first_row + begin + i, head), at.size, place.lane);
        for_value.add(dropped, o.dy + at.result(first_row + begin + i, head), at.size, place.lane);
      }
    }
  }
  for_key.write(o.dkeys + at.key(place.row, place.head), rule.scale, at.size, place.lane);
  for_value.write(o.dkeys + at.value(place.row, place.head), 1.0F, at.size, place.lane);
}

unsigned blocks_of_queries(const AttentionShape& shape) {
  return blocks_for(std::int64_t{shape.examples} * shape.length * shape.heads, kWarpsPerBlock);
}
unsigned blocks_of_keys(const AttentionShape& shape) {
  return blocks_for(std::int64_t{shape.examples} * shape.key_length * shape.kv_heads, kWarpsPerBlock);
}

}  // namespace

template <typename T>
void plain_attention(cudaStream_t stream, const AttentionOperands<T>& operands, const AttentionShape& shape,
                     const AttentionRule& rule) {
  forward_kernel<<<blocks_of_queries(shape), kBlock, 0, stream>>>(operands, shape, rule);
  check_launch("cuda_attention");
}

template <typename T>
void attention_probabilities(cudaStream_t stream, const T* qkv, T* probabilities, const AttentionShape& shape,
                             const AttentionRule& rule) {
  probabilities_kernel<<<blocks_of_queries(shape), kBlock, 0, stream>>>(qkv, probabilities, shape, rule);
  check_launch("cuda_attention_probabilities");
}

template <typename T>
void plain_attention_grad(cudaStream_t stream, const AttentionGradOperands<T>& operands, const AttentionShape& shape,
                          const AttentionRule& rule) {
  query_grad_kernel<<<blocks_of_queries(shape), kBlock, 0, stream>>>(operands, shape, rule);
  key_grad_kernel<<<blocks_of_keys(shape), kBlock, 0, stream>>>(operands, shape, rule);
  check_launch("cuda_attention_grad");
}

#define SNUG_INSTANTIATE(T)                                                                                              \
  template void plain_attention(cudaStream_t, const AttentionOperands<T>&, const AttentionShape&, const AttentionRule&); \
  template void attention_probabilities(cudaStream_t, const T*, T*, const AttentionShape&, const AttentionRule&);        \
  template void plain_attention_grad(cudaStream_t, const AttentionGradOperands<T>&, const AttentionShape&, const AttentionRule&)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
