#include <type_traits>

#include "backends/cuda/norm/columns.cuh"
#include "backends/cuda/sequence/row_norm.h"
#include "backends/cuda/sequence/warp.cuh"

// The sums of a lane are in float, those of a row in double, always in the same order.

namespace snug::backends::cuda::launch {

namespace {

constexpr unsigned kRowsPerBlock = kThreads / kWarp;

// A warp's row.
struct Place {
  std::uint32_t row;
  unsigned lane;

  __device__ Place() : row(blockIdx.x * kRowsPerBlock + threadIdx.x / kWarp), lane(threadIdx.x % kWarp) {}
};

// A lane's packs of its warp's row: every 32nd. At most `Held` of them are read once and stay in registers; with Held = 0 there
// may be any number, read anew (from the cache) each time.
template <typename T, int V, int Held>
class LaneOfRow {
 public:
  __device__ LaneOfRow(const T* row, std::uint32_t vectors, unsigned lane) : row_(row), vectors_(vectors), lane_(lane) {
#pragma unroll
    for (int i = 0; i < Held; ++i) {
      if (at(i) < vectors_) held_[i] = load<V>(row_ + at(i) * V);
    }
  }

  // f(first column, pack)
  template <typename F>
  __device__ void for_each(const F& f) const {
    if constexpr (Held > 0) {
#pragma unroll
      for (int i = 0; i < Held; ++i) {
        if (at(i) < vectors_) f(at(i) * V, held_[i]);
      }
    } else {
#pragma unroll 4
      for (std::uint32_t i = lane_; i < vectors_; i += kWarp) f(i * V, load<V>(row_ + i * V));
    }
  }

 private:
  __device__ std::uint32_t at(int i) const { return lane_ + i * kWarp; }

  const T* row_;
  std::uint32_t vectors_, lane_;
  Pack<T, V> held_[Held > 0 ? Held : 1];
};

template <typename T, int V, int Held>
__global__ void __launch_bounds__(kThreads) layer_norm_kernel(LayerNormOperands<T> o, float epsilon, RowNormShape shape) {
  const Place place;
  if (place.row >= shape.rows) return;  // the whole warp
  const std::size_t first = std::size_t{place.row} * shape.columns;
  const LaneOfRow<T, V, Held> x(o.x + first, shape.columns / V, place.lane);
  float sum = 0;
  x.for_each([&](std::uint32_t /*column*/, const Pack<T, V>& pack) {
#pragma unroll
    for (int v = 0; v < V; ++v) sum += widen(pack.at[v]);
  });
  const auto mean = static_cast<float>(sum_of_warp(double{sum}) / shape.columns);
  float squares = 0;
  x.for_each([&](std::uint32_t /*column*/, const Pack<T, V>& pack) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float difference = widen(pack.at[v]) - mean;
      squares += difference * difference;
    }
  });
  const double variance = sum_of_warp(double{squares}) / shape.columns;
  const auto inverse = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(epsilon)));
  x.for_each([&](std::uint32_t column, Pack<T, V> pack) {
    const Pack<float, V> weight = load<V>(o.weight + column);
    const Pack<float, V> bias = load<V>(o.bias + column);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>((widen(pack.at[v]) - mean) * inverse * weight.at[v] + bias.at[v]);
    store<V>(o.y + first + column, pack);
  });
  if (place.lane == 0) {
    o.mean[place.row] = mean;
    o.inverse_std[place.row] = inverse;
  }
}

template <typename T, int V, int Held>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNormOperands<T> o, float epsilon, RowNormShape shape) {
  const Place place;
  if (place.row >= shape.rows) return;  // the whole warp
  const std::size_t first = std::size_t{place.row} * shape.columns;
  const LaneOfRow<T, V, Held> x(o.x + first, shape.columns / V, place.lane);
  float squares = 0;
  x.for_each([&](std::uint32_t /*column*/, const Pack<T, V>& pack) {
#pragma unroll
    for (int v = 0; v < V; ++v) squares += widen(pack.at[v]) * widen(pack.at[v]);
  });
  const double mean_square = sum_of_warp(double{squares}) / shape.columns;
  const auto inverse = static_cast<float>(1.0 / sqrt(mean_square + static_cast<double>(epsilon)));
  x.for_each([&](std::uint32_t column, Pack<T, V> pack) {
    const Pack<float, V> weight = load<V>(o.weight + column);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(widen(pack.at[v]) * inverse * weight.at[v]);
    store<V>(o.y + first + column, pack);
  });
  if (place.lane == 0) o.inverse_rms[place.row] = inverse;
}

// With d = weight * dy: dx = (d - mean of d - normalized x * mean of d * normalized x) * inverse, the means over the row; RMS
// norm subtracts no mean, of d neither.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) grad_input_kernel(RowNormGradOperands<T> o, RowNormShape shape) {
  const Place place;
  if (place.row >= shape.rows) return;  // the whole warp
  const std::size_t first = std::size_t{place.row} * shape.columns;
  const std::uint32_t vectors = shape.columns / V;
  const bool centers = o.mean != nullptr;
  const float mean = centers ? o.mean[place.row] : 0.0F;
  const float inverse = o.inverse[place.row];
  float sum = 0;
  float products = 0;
#pragma unroll 2
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> dy = load<V>(o.dy + first + i * V);
    const Pack<T, V> x = load<V>(o.x + first + i * V);
    const Pack<float, V> weight = load<V>(o.weight + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float weighted = weight.at[v] * widen(dy.at[v]);
      sum += weighted;
      products += weighted * ((widen(x.at[v]) - mean) * inverse);
    }
  }
  const float mean_weighted = centers ? static_cast<float>(sum_of_warp(double{sum}) / shape.columns) : 0.0F;
  const auto mean_product = static_cast<float>(sum_of_warp(double{products}) / shape.columns);
#pragma unroll 2
  for (std::uint32_t i = place.lane; i < vectors; i += kWarp) {
    const Pack<T, V> dy = load<V>(o.dy + first + i * V);
    const Pack<T, V> x = load<V>(o.x + first + i * V);
    const Pack<float, V> weight = load<V>(o.weight + i * V);
    Pack<T, V> dx;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float weighted = weight.at[v] * widen(dy.at[v]);
      const float normalized = (widen(x.at[v]) - mean) * inverse;
      dx.at[v] = narrow<T>((weighted - mean_weighted - normalized * mean_product) * inverse);
    }
    store_sum<V>(o.dx, o.addend, first + i * V, dx);
  }
}

template <typename T>
struct ParameterArguments {
  const T *dy, *x;
  const float *mean, *inverse;
};

template <typename T, int V>
class ParameterTerms {
 public:
  using Arguments = ParameterArguments<T>;
  static constexpr int kVector = V;

  __device__ ParameterTerms(const Arguments& arguments, const RowShape& shape, std::uint32_t /*group*/, std::uint32_t channel)
      : arguments_(arguments), rows_(shape.batch), columns_(shape.channels), column_(channel) {}
  __device__ std::uint32_t rows() const { return rows_; }
  __device__ void add(std::uint32_t row, float (&a)[V], float (&b)[V]) const {
    const std::size_t at = std::size_t{row} * columns_ + column_;
    const Pack<T, V> dy = load<V>(arguments_.dy + at);
    const Pack<T, V> x = load<V>(arguments_.x + at);
    const float mean = arguments_.mean == nullptr ? 0.0F : arguments_.mean[row];
    const float inverse = arguments_.inverse[row];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float gradient = widen(dy.at[v]);
      a[v] += gradient * ((widen(x.at[v]) - mean) * inverse);
      b[v] += gradient;
    }
  }

 private:
  Arguments arguments_;
  std::uint32_t rows_, columns_, column_;
};

struct FinishParameters {
  float* weight_gradient;
  float* bias_gradient;
  const float* addend;

  __device__ void operator()(std::uint32_t /*group*/, std::uint32_t column, double a, double b) const {
    weight_gradient[column] = add_to(addend, column, static_cast<float>(a));
    if (bias_gradient != nullptr) bias_gradient[column] = static_cast<float>(b);
  }
};

unsigned blocks_of(const RowNormShape& shape) { return blocks_for(shape.rows, kRowsPerBlock); }

}  // namespace

// body(vector, held) with the number of values in a pack and of packs that a lane holds, as constants.
template <typename T, typename Body>
void with_lanes(const RowNormShape& shape, const Body& body) {
  using std::integral_constant;
  constexpr int V = kPack<T>;
  if (shape.columns % V != 0) return body(integral_constant<int, 1>{}, integral_constant<int, 0>{});
  const std::uint32_t packs = (shape.columns / V + kWarp - 1) / kWarp;
  if (packs <= 3) return body(integral_constant<int, V>{}, integral_constant<int, 3>{});
  if (packs <= 4) return body(integral_constant<int, V>{}, integral_constant<int, 4>{});
  if (packs <= 8) return body(integral_constant<int, V>{}, integral_constant<int, 8>{});
  body(integral_constant<int, V>{}, integral_constant<int, 0>{});
}

template <typename T>
void layer_norm(cudaStream_t stream, const LayerNormOperands<T>& operands, float epsilon, const RowNormShape& shape) {
  with_lanes<T>(shape, [&](auto vector, auto held) {
    layer_norm_kernel<T, vector.value, held.value><<<blocks_of(shape), kThreads, 0, stream>>>(operands, epsilon, shape);
  });
  check_launch("cuda_layer_norm");
}

template <typename T>
void rms_norm(cudaStream_t stream, const RmsNormOperands<T>& operands, float epsilon, const RowNormShape& shape) {
  with_lanes<T>(shape, [&](auto vector, auto held) {
    rms_norm_kernel<T, vector.value, held.value><<<blocks_of(shape), kThreads, 0, stream>>>(operands, epsilon, shape);
  });
  check_launch("cuda_rms_norm");
}

template <typename T>
void row_norm_grad_input(cudaStream_t stream, const RowNormGradOperands<T>& operands, const RowNormShape& shape) {
  if (shape.columns % kPack<T> == 0) {
    grad_input_kernel<T, kPack<T>><<<blocks_of(shape), kThreads, 0, stream>>>(operands, shape);
  } else {
    grad_input_kernel<T, 1><<<blocks_of(shape), kThreads, 0, stream>>>(operands, shape);
  }
  check_launch("cuda_row_norm_grad_input");
}

template <typename T>
void row_norm_grad_parameters(cudaStream_t stream, const RowNormParameterOperands<T>& operands, const RowNormShape& shape,
                              const ColumnSums& sums, float* partial) {
  const ParameterArguments<T> arguments{operands.dy, operands.x, operands.mean, operands.inverse};
  const FinishParameters finish{operands.weight_gradient, operands.bias_gradient, operands.addend};
  constexpr const char* kName = "cuda_row_norm_grad_parameters";
  if (sums.tiling.vector == 1) {
    launch_sums<ParameterTerms<T, 1>>(stream, arguments, finish, shape.as_rows(), sums, partial, kName);
  } else {
    launch_sums<ParameterTerms<T, kPack<T>>>(stream, arguments, finish, shape.as_rows(), sums, partial, kName);
  }
}

#define SNUG_INSTANTIATE(T)                                                                                     \
  template void layer_norm(cudaStream_t, const LayerNormOperands<T>&, float, const RowNormShape&);              \
  template void rms_norm(cudaStream_t, const RmsNormOperands<T>&, float, const RowNormShape&);                  \
  template void row_norm_grad_input(cudaStream_t, const RowNormGradOperands<T>&, const RowNormShape&);          \
  template void row_norm_grad_parameters(cudaStream_t, const RowNormParameterOperands<T>&, const RowNormShape&, \
                                         const ColumnSums&, float*)

SNUG_INSTANTIATE(float);
SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
