#include <algorithm>

#include "backends/cuda/convolution/gemm_convolution.h"
#include "backends/cuda/convolution/gemm_tile.cuh"

namespace snug::backends::cuda::launch {

namespace {

constexpr int kRows = 64;         // of a block's tile: taps and input channels
constexpr int kBlock = 128;       // threads
constexpr int kLaneRowFours = 2;  // groups of four neighboring rows per lane
// All are resident at once, three on each of a Hopper's 132 multiprocessors. A constant, so that other GPUs add up in the same
// order.
constexpr int kBlocks = 396;

// Division of numbers below 2^31 by a number that is known before the launch.
struct Divisor {
  unsigned divisor, multiplier, shift;

  explicit Divisor(unsigned by) : divisor(by), multiplier(0), shift(0) {
    if (by == 1) return;
    unsigned bits = 0;
    while ((1ULL << bits) < by) ++bits;
    multiplier = static_cast<unsigned>(((1ULL << (31 + bits)) + by - 1) / by);
    shift = bits - 1;
  }
  __device__ unsigned quotient(unsigned number) const { return divisor == 1 ? number : __umulhi(number, multiplier) >> shift; }
};

struct Weights {
  const float* dy;
  const float* x;
  const float* addend;
  float* result;  // of all splits, one after the other
  ConvShape shape;
  int rows;    // kernel_height * kernel_width * in_channels
  int pixels;  // of all outputs
  int split_pixels;
  Divisor width, height;  // of the output
};

int columns_of(const ConvShape& shape) { return shape.out_channels <= 16 ? 16 : shape.out_channels <= 32 ? 32 : 64; }
int depth_of(int columns) { return columns == 64 ? 16 : 32; }

// Adds the results of a block's slices, in their order, to slice 0's `sums`. `shared` has room for one block's result for each
// slice except the first.
template <int Slices, int Sums>
__device__ inline void add_slices(float (&sums)[Sums], float* shared, int slice, int thread_of_slice, int threads_of_slice) {
  if constexpr (Slices > 1) {
    __syncthreads();
    if (slice > 0) {
      float* mine = shared + static_cast<std::size_t>(slice - 1) * Sums * threads_of_slice + thread_of_slice;
#pragma unroll
      for (int i = 0; i < Sums; ++i) mine[i * threads_of_slice] = sums[i];
    }
    __syncthreads();
    if (slice == 0) {
#pragma unroll
      for (int s = 0; s < Slices - 1; ++s) {
        const float* theirs = shared + static_cast<std::size_t>(s) * Sums * threads_of_slice + thread_of_slice;
#pragma unroll
        for (int i = 0; i < Sums; ++i) sums[i] += theirs[i * threads_of_slice];
      }
    }
  }
}

// dw[channel][row] = sum over pixels of x[pixel moved by the row's tap][row's channel] * dy[pixel][channel]. Warps divide the
// columns of a tile and its depth: a slice takes 8 pixels of each tile.
template <int Columns, int LaneColumnFours, bool Vector>
__global__ void __launch_bounds__(kBlock) weight_kernel(const Weights g) {
  constexpr int kColumnWarps = Columns / (kLaneColumns * 4 * LaneColumnFours);
  constexpr int kSlices = kBlock / 32 / kColumnWarps;
  constexpr int kDepth = 8 * kSlices;
  constexpr int kLeft = kDepth * kRows;
  constexpr int kStage = kLeft + kDepth * Columns;
  constexpr int kLeftStep = kBlock / (kRows / 4);  // depths copied at once
  constexpr int kRightStep = kBlock / (Columns / 4);
  constexpr int kSliceThreads = 32 * kColumnWarps;
  constexpr int kSums = 4 * kLaneRowFours * 4 * LaneColumnFours;
  static_assert((kSlices - 1) * kSliceThreads * kSums <= kStages * kStage && kRows == kLaneRows * 4 * kLaneRowFours);
  __shared__ __align__(16) float shared[kStages * kStage];

  const ConvShape& s = g.shape;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Columns;
  const int begin = static_cast<int>(blockIdx.z) * g.split_pixels;
  const int end = min(begin + g.split_pixels, g.pixels);

  // A thread copies the same four rows, and the same four columns, of every tile.
  struct Row {
    int h, w, channel;  // where the tap reads at output (0, 0)
    bool valid;
  };
  constexpr int kTaps = Vector ? 1 : 4;  // four neighboring channels share their tap
  Row row[kTaps];
#pragma unroll
  for (int e = 0; e < kTaps; ++e) {
    const int at = first_row + 4 * (thread % (kRows / 4)) + e;
    const int tap = at / s.in_channels;
    row[e] = {tap / s.kernel_width * s.dilation_height - s.padding_height,
              tap % s.kernel_width * s.dilation_width - s.padding_width, at % s.in_channels, at < g.rows};
  }
  const int column = first_column + 4 * (thread % (Columns / 4));
  int loaded = begin;

  const auto load = [&](int stage) {
    float* left = shared + stage * kStage + 4 * (thread % (kRows / 4));
#pragma unroll
    for (int i = 0; i < kDepth / kLeftStep; ++i) {
      const int depth = thread / (kRows / 4) + i * kLeftStep;
      const int pixel = loaded + depth;
      const int across = static_cast<int>(g.width.quotient(static_cast<unsigned>(pixel)));
      const int image = static_cast<int>(g.height.quotient(static_cast<unsigned>(across)));
      const int h = (across - image * s.out_height) * s.stride_height;
      const int w = (pixel - across * s.out_width) * s.stride_width;
#pragma unroll
      for (int e = 0; e < kTaps; ++e) {
        const bool valid = row[e].valid && pixel < end &&
                           static_cast<unsigned>(h + row[e].h) < static_cast<unsigned>(s.in_height) &&
                           static_cast<unsigned>(w + row[e].w) < static_cast<unsigned>(s.in_width);
        const int at = ((image * s.in_height + h + row[e].h) * s.in_width + w + row[e].w) * s.in_channels + row[e].channel;
        if constexpr (Vector) {
          copy4(left + depth * kRows, g.x + (valid ? at : 0), valid);
        } else {
          copy1(left + depth * kRows + e, g.x + (valid ? at : 0), valid);
        }
      }
    }
    float* right = shared + stage * kStage + kLeft + 4 * (thread % (Columns / 4));
#pragma unroll
    for (int i = 0; i < kDepth / kRightStep; ++i) {
      const int depth = thread / (Columns / 4) + i * kRightStep;
      const int pixel = loaded + depth;
      const float* from = g.dy + (pixel < end ? static_cast<std::size_t>(pixel) * s.out_channels : 0);
      if constexpr (Vector) {
        const bool valid = pixel < end && column < s.out_channels;
        copy4(right + depth * Columns, from + (valid ? column : 0), valid);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const bool valid = pixel < end && column + e < s.out_channels;
          copy1(right + depth * Columns + e, from + (valid ? column + e : 0), valid);
        }
      }
    }
    loaded += kDepth;
  };

  const int slice = thread / kSliceThreads;
  const int of_slice = thread % kSliceThreads;
  const int lane = of_slice % 32;
  const int my_row = lane / kLaneColumns * 4;
  const int my_column = of_slice / 32 * (kLaneColumns * 4 * LaneColumnFours) + lane % kLaneColumns * 4;
  float sums[kSums] = {};
  const auto compute = [&](int stage) {
    const float* left = shared + stage * kStage + slice * 8 * kRows + my_row;
    const float* right = shared + stage * kStage + kLeft + slice * 8 * Columns + my_column;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float4 a[kLaneRowFours];
      float4 b[LaneColumnFours];
#pragma unroll
      for (int i = 0; i < kLaneRowFours; ++i) a[i] = load4(left + k * kRows + i * 4 * kLaneRows);
#pragma unroll
      for (int j = 0; j < LaneColumnFours; ++j) b[j] = load4(right + k * Columns + j * 4 * kLaneColumns);
#pragma unroll
      for (int j = 0; j < 4 * LaneColumnFours; ++j) {
#pragma unroll
        for (int i = 0; i < 4 * kLaneRowFours; ++i) {
          float& sum = sums[j * 4 * kLaneRowFours + i];
          sum = fmaf(element(a[i / 4], i % 4), element(b[j / 4], j % 4), sum);
        }
      }
    }
  };

  pipelined((end - begin + kDepth - 1) / kDepth, load, compute);
  __pipeline_wait_prior(0);
  add_slices<kSlices>(sums, shared, slice, of_slice, kSliceThreads);
  if (slice > 0) return;

  float* result = g.result + static_cast<std::size_t>(blockIdx.z) * g.rows * s.out_channels;
#pragma unroll
  for (int j = 0; j < 4 * LaneColumnFours; ++j) {
    const int channel = first_column + my_column + j / 4 * 4 * kLaneColumns + j % 4;
    if (channel >= s.out_channels) continue;
#pragma unroll
    for (int i = 0; i < kLaneRowFours; ++i) {
      const int at = first_row + my_row + i * 4 * kLaneRows;
      const std::size_t position = static_cast<std::size_t>(channel) * g.rows + at;
      Pack<float, 4> four{};
#pragma unroll
      for (int e = 0; e < 4; ++e) four.at[e] = sums[j * 4 * kLaneRowFours + 4 * i + e];
      if constexpr (Vector) {
        if (at < g.rows) store_sum<4>(result, g.addend, position, four);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (at + e < g.rows) result[position + e] = add_to(g.addend, position + e, four.at[e]);
        }
      }
    }
  }
}

constexpr int kSumLanes = 32;
constexpr int kSumGroups = 8;  // each adds up a run of splits

__global__ void __launch_bounds__(kSumLanes* kSumGroups)
    add_splits_kernel(const float* partial, const float* addend, float* result, int splits, unsigned count) {
  __shared__ float sums[kSumGroups][kSumLanes];
  const unsigned i = blockIdx.x * kSumLanes + threadIdx.x;
  const int group = static_cast<int>(threadIdx.y);
  const int run = (splits + kSumGroups - 1) / kSumGroups;
  float sum = 0;
  if (i < count) {
    const int end = min((group + 1) * run, splits);
#pragma unroll 4
    for (int split = group * run; split < end; ++split) sum += partial[static_cast<std::size_t>(split) * count + i];
  }
  sums[group][threadIdx.x] = sum;
  __syncthreads();
  if (group != 0 || i >= count) return;
#pragma unroll
  for (int g = 1; g < kSumGroups; ++g) sum += sums[g][threadIdx.x];
  result[i] = add_to(addend, i, sum);
}

template <int Columns, int LaneColumnFours>
void launch_weights(cudaStream_t stream, const Weights& g, int splits) {
  const dim3 blocks(blocks_for(g.rows, kRows), blocks_for(g.shape.out_channels, Columns), static_cast<unsigned>(splits));
  if (g.shape.in_channels % 4 == 0 && g.shape.out_channels % 4 == 0) {
    weight_kernel<Columns, LaneColumnFours, true><<<blocks, kBlock, 0, stream>>>(g);
  } else {
    weight_kernel<Columns, LaneColumnFours, false><<<blocks, kBlock, 0, stream>>>(g);
  }
  check_launch("weight_kernel");
}

int rows_of(const ConvShape& shape) { return shape.kernel_height * shape.kernel_width * shape.in_channels; }
int pixels_of(const ConvShape& shape) { return shape.batch * shape.out_height * shape.out_width; }

}  // namespace

GemmSplits gemm_splits(const ConvShape& shape, std::size_t limit) {
  const int columns = columns_of(shape);
  const int depth = depth_of(columns);
  const auto tiles =
      static_cast<int>(blocks_for(rows_of(shape), kRows) * blocks_for(shape.out_channels, static_cast<unsigned>(columns)));
  const auto steps = static_cast<int>(blocks_for(pixels_of(shape), static_cast<unsigned>(depth)));
  const std::size_t result_bytes =
      sizeof(float) * static_cast<std::size_t>(rows_of(shape)) * static_cast<std::size_t>(shape.out_channels);
  const auto fit = static_cast<int>(std::min<std::size_t>(limit / result_bytes, kBlocks));
  // A split with fewer steps than are in flight would only wait.
  int splits = std::max(1, std::min({kBlocks / tiles, steps / (2 * kStages), fit}));
  const int steps_each = (steps + splits - 1) / splits;
  splits = (steps + steps_each - 1) / steps_each;
  return {.splits = splits, .pixels = steps_each * depth};
}

std::size_t gemm_scratch(const ConvShape& shape, const GemmSplits& splits) {
  if (splits.splits == 1) return 0;
  return sizeof(float) * static_cast<std::size_t>(splits.splits) * static_cast<std::size_t>(rows_of(shape)) *
         static_cast<std::size_t>(shape.out_channels);
}

void gemm_conv2d_grad_weight(cudaStream_t stream, const float* dy, const float* x, const float* addend, float* dw, float* partial,
                             const ConvShape& shape, const GemmSplits& splits) {
  const bool whole = splits.splits == 1;
  const Weights g{.dy = dy,
                  .x = x,
                  .addend = whole ? addend : nullptr,
                  .result = whole ? dw : partial,
                  .shape = shape,
                  .rows = rows_of(shape),
                  .pixels = pixels_of(shape),
                  .split_pixels = splits.pixels,
                  .width = Divisor(static_cast<unsigned>(shape.out_width)),
                  .height = Divisor(static_cast<unsigned>(shape.out_height))};
  switch (columns_of(shape)) {
    case 16:
      launch_weights<16, 1>(stream, g, splits.splits);
      break;
    case 32:
      launch_weights<32, 2>(stream, g, splits.splits);
      break;
    default:
      launch_weights<64, 2>(stream, g, splits.splits);
  }
  if (whole) return;
  const auto count = static_cast<unsigned>(g.rows * shape.out_channels);
  add_splits_kernel<<<blocks_for(count, kSumLanes), dim3(kSumLanes, kSumGroups), 0, stream>>>(partial, addend, dw, splits.splits,
                                                                                              count);
  check_launch("add_splits_kernel");
}

}  // namespace snug::backends::cuda::launch
