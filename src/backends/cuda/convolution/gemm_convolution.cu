#include "backends/cuda/convolution/gemm_convolution.h"
#include "backends/cuda/convolution/gemm_tile.cuh"

namespace snug::backends::cuda::launch {

namespace {

enum class Direction { forward, grad_input };

constexpr int kDepth = 16;          // of a tile in shared memory
constexpr int kPitch = kDepth + 4;  // of a row there: four more put the lanes of a warp on different banks

// Forward and data gradient are the same product. A row is a pixel of the result; the depth runs over the taps of the kernel and
// the channels of the source; the source's pixel for a row and a tap is gathered in place.
struct Gather {
  const float* source;
  const float* weight;
  const float* bias;
  const float* addend;
  float* result;
  ConvShape shape;
};

// Which image is which.
struct Sides {
  int source_height, source_width, channels;
  int result_height, result_width, columns;
};

template <Direction D>
__host__ __device__ inline Sides sides_of(const ConvShape& s) {
  if (D == Direction::forward) return {s.in_height, s.in_width, s.in_channels, s.out_height, s.out_width, s.out_channels};
  return {s.out_height, s.out_width, s.out_channels, s.in_height, s.in_width, s.in_channels};
}

// One axis of the image within a block. In a strided data gradient only every stride-th pixel meets a given tap; a block has
// pixels that meet the same taps, `first_tap` and every `tap_step`-th after it, so that nothing is multiplied by zero.
struct Axis {
  int pixels;  // of the result: first, first + spacing, ...
  int first, spacing;
  int taps, first_tap, tap_step;
  int origin, step, move;  // the source's coordinate: origin + step * pixel + move * tap
};

template <Direction D>
__device__ inline Axis axis_of(int phase, int result, int kernel, int stride, int padding, int dilation) {
  if constexpr (D == Direction::forward) {
    return {result, 0, 1, kernel, 0, 1, -padding, stride, dilation};
  } else {
    const int first_tap = (phase + padding) % stride;
    const int taps = first_tap < kernel ? (kernel - first_tap + stride - 1) / stride : 0;
    return {phase < result ? (result - phase + stride - 1) / stride : 0,
            phase,
            stride,
            taps,
            first_tap,
            stride,
            (phase + padding - first_tap) / stride,
            1,
            -dilation};
  }
}

// The tap and channel of a position along the depth.
struct Place {
  int vertical, horizontal, channel;

  __device__ static Place at(int depth, int channels, int horizontal_taps) {
    const int tap = depth / channels;
    return {tap / horizontal_taps, tap % horizontal_taps, depth % channels};
  }
  __device__ void advance(int channels, int horizontal_taps) {
    channel += kDepth;
    while (channel >= channels) {
      channel -= channels;
      if (++horizontal == horizontal_taps) {
        horizontal = 0;
        ++vertical;
      }
    }
  }
};

// What a block of threads computes: `Rows` x `Columns` of the product, each lane `LaneRowCount` x `LaneColumnCount` of them.
// `Resident` blocks must fit on a multiprocessor, which limits the registers.
template <int Rows, int Columns, int LaneRowCount, int LaneColumnCount, int Resident>
struct Tile {
  static constexpr int kRows = Rows;
  static constexpr int kColumns = Columns;
  static constexpr int kMyRows = LaneRowCount;        // kLaneRows apart
  static constexpr int kMyColumns = LaneColumnCount;  // groups of four neighbors
  static constexpr int kResident = Resident;
  static constexpr int kWarpRows = kLaneRows * LaneRowCount;
  static constexpr int kWarpColumns = kLaneColumns * LaneColumnCount;
  static constexpr int kColumnWarps = Columns / kWarpColumns;
  static constexpr int kBlock = 32 * (Rows / kWarpRows) * kColumnWarps;
  static constexpr int kLeftCopies = Rows * (kDepth / 4) / kBlock;
  static constexpr int kRightCopies = Columns * (kDepth / 4) / kBlock;
  static constexpr int kLeft = Rows * kPitch;
  static constexpr int kStage = kLeft + Columns * kPitch;
  static constexpr int kSums = LaneRowCount * LaneColumnCount;
  static_assert(kLeftCopies * kBlock == Rows * (kDepth / 4) && kRightCopies * kBlock == Columns * (kDepth / 4));
  static_assert(Rows % kWarpRows == 0 && Columns % kWarpColumns == 0);
};

// Vector: all channel counts are multiples of four.
template <Direction D, typename P, bool Vector>
__global__ void __launch_bounds__(P::kBlock, P::kResident) gather_kernel(const Gather g) {
  constexpr int kFours = P::kColumns / 4;
  __shared__ __align__(16) float shared[kStages * P::kStage];

  const ConvShape& s = g.shape;
  const Sides sides = sides_of<D>(s);
  const int phases_across = D == Direction::forward ? 1 : s.stride_width;
  const Axis vertical = axis_of<D>(static_cast<int>(blockIdx.z) / phases_across, sides.result_height, s.kernel_height,
                                   s.stride_height, s.padding_height, s.dilation_height);
  const Axis horizontal = axis_of<D>(static_cast<int>(blockIdx.z) % phases_across, sides.result_width, s.kernel_width,
                                     s.stride_width, s.padding_width, s.dilation_width);
  const int rows = s.batch * vertical.pixels * horizontal.pixels;
  const int first_row = static_cast<int>(blockIdx.x) * P::kRows;
  if (first_row >= rows) return;
  const int first_column = static_cast<int>(blockIdx.y) * P::kColumns;
  const int depth = vertical.taps * horizontal.taps * sides.channels;
  const int across_taps = max(horizontal.taps, 1);  // at least 1, since it is a divisor; without taps there is no depth
  const int thread = static_cast<int>(threadIdx.x);

  // What this thread copies. From the left factor: four neighbors in depth, of several rows.
  const int quarter = thread % (kDepth / 4);
  int row_h[P::kLeftCopies];
  int row_w[P::kLeftCopies];
  int row_at[P::kLeftCopies];
#pragma unroll
  for (int i = 0; i < P::kLeftCopies; ++i) {
    const int row = first_row + thread / (kDepth / 4) + i * (P::kBlock / (kDepth / 4));
    const int across = row / horizontal.pixels;
    const int image = across / vertical.pixels;
    row_h[i] = vertical.origin + vertical.step * (across % vertical.pixels);
    row_w[i] = horizontal.origin + horizontal.step * (row % horizontal.pixels);
    row_at[i] = ((image * sides.source_height + row_h[i]) * sides.source_width + row_w[i]) * sides.channels;
    if (row >= rows) row_h[i] = -(1 << 24);  // never inside
  }
  Place left = Place::at(4 * quarter, sides.channels, across_taps);
  // From the right factor: in forward the same, of several columns; otherwise four columns at several depths.
  Place right[P::kRightCopies];
  if constexpr (D == Direction::grad_input) {
#pragma unroll
    for (int i = 0; i < P::kRightCopies; ++i) {
      right[i] = Place::at((thread + i * P::kBlock) / kFours, sides.channels, across_taps);
    }
  }
  int loaded = 0;  // depth

  const auto load_left = [&](float* to) {
    if constexpr (Vector) {
      const int dh = left.vertical * vertical.move;
      const int dw = left.horizontal * horizontal.move;
      const int delta = (dh * sides.source_width + dw) * sides.channels + left.channel;
      const bool inside = left.vertical < vertical.taps;
#pragma unroll
      for (int i = 0; i < P::kLeftCopies; ++i) {
        const bool valid = inside && static_cast<unsigned>(row_h[i] + dh) < static_cast<unsigned>(sides.source_height) &&
                           static_cast<unsigned>(row_w[i] + dw) < static_cast<unsigned>(sides.source_width);
        float* target = to + (thread / (kDepth / 4) + i * (P::kBlock / (kDepth / 4))) * kPitch + 4 * quarter;
        copy4(target, g.source + (valid ? row_at[i] + delta : 0), valid);
      }
      left.advance(sides.channels, across_taps);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Place place = Place::at(loaded + 4 * quarter + e, sides.channels, across_taps);
        const int dh = place.vertical * vertical.move;
        const int dw = place.horizontal * horizontal.move;
        const int delta = (dh * sides.source_width + dw) * sides.channels + place.channel;
#pragma unroll
        for (int i = 0; i < P::kLeftCopies; ++i) {
          const bool valid = place.vertical < vertical.taps &&
                             static_cast<unsigned>(row_h[i] + dh) < static_cast<unsigned>(sides.source_height) &&
                             static_cast<unsigned>(row_w[i] + dw) < static_cast<unsigned>(sides.source_width);
          float* target = to + (thread / (kDepth / 4) + i * (P::kBlock / (kDepth / 4))) * kPitch + 4 * quarter + e;
          copy1(target, g.source + (valid ? row_at[i] + delta : 0), valid);
        }
      }
    }
  };
  const auto load_right = [&](float* to) {
#pragma unroll
    for (int i = 0; i < P::kRightCopies; ++i) {
      const int item = thread + i * P::kBlock;
      if constexpr (D == Direction::forward) {
        // weight[column][depth]. Groups of four are spread over the tile, so that lanes that read one each at the same time use
        // different banks.
        const int column = item / (kDepth / 4);
        const int at = loaded + 4 * quarter;
        float* target = to + (column % 4 * kFours + column / 4) * kPitch + 4 * quarter;
        const bool inside = first_column + column < sides.columns;
        const float* from = g.weight + static_cast<std::size_t>(inside ? first_column + column : 0) * depth;
        if constexpr (Vector) {
          const bool valid = inside && at < depth;
          copy4(target, from + (valid ? at : 0), valid);
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) copy1(target + e, from + (at + e < depth ? at + e : 0), inside && at + e < depth);
        }
      } else {
        // weight[channel][tap][column]
        const int column = first_column + 4 * (item % kFours);
        float* target = to + item / kFours * P::kColumns + 4 * (item % kFours);
        Place& place = right[i];
        const bool inside = place.vertical < vertical.taps;
        const int tap = (vertical.first_tap + place.vertical * vertical.tap_step) * s.kernel_width + horizontal.first_tap +
                        place.horizontal * horizontal.tap_step;
        const float* from =
            g.weight +
            (inside ? (static_cast<std::size_t>(place.channel) * s.kernel_height * s.kernel_width + tap) * sides.columns : 0);
        if constexpr (Vector) {
          const bool valid = inside && column < sides.columns;
          copy4(target, from + (valid ? column : 0), valid);
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            copy1(target + e, from + (column + e < sides.columns ? column + e : 0), inside && column + e < sides.columns);
          }
        }
        place.advance(sides.channels, across_taps);
      }
    }
  };
  const auto load = [&](int stage) {
    float* to = shared + stage * P::kStage;
    load_left(to);
    load_right(to + P::kLeft);
    loaded += kDepth;
  };

  // What this thread computes.
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int my_row = warp / P::kColumnWarps * P::kWarpRows + lane / kLaneColumns;
  const int my_column = warp % P::kColumnWarps * P::kWarpColumns + lane % kLaneColumns * 4;
  float sums[P::kSums] = {};
  const auto compute = [&](int stage) {
    const float* rows_at = shared + stage * P::kStage + my_row * kPitch;
    const float* columns_at = shared + stage * P::kStage + P::kLeft;
#pragma unroll
    for (int at = 0; at < kDepth; at += 4) {
      float4 a[P::kMyRows];
#pragma unroll
      for (int i = 0; i < P::kMyRows; ++i) a[i] = load4(rows_at + i * kLaneRows * kPitch + at);
      if constexpr (D == Direction::forward) {
        float4 b[P::kMyColumns];
#pragma unroll
        for (int j = 0; j < P::kMyColumns; ++j) {
          b[j] = load4(columns_at + (j % 4 * kFours + my_column / 4 + j / 4 * kLaneColumns) * kPitch + at);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
          for (int i = 0; i < P::kMyRows; ++i) {
#pragma unroll
            for (int j = 0; j < P::kMyColumns; ++j) {
              float& sum = sums[i * P::kMyColumns + j];
              sum = fmaf(element(a[i], k), element(b[j], k), sum);
            }
          }
        }
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float4 b[P::kMyColumns / 4];
#pragma unroll
          for (int j = 0; j < P::kMyColumns / 4; ++j) {
            b[j] = load4(columns_at + (at + k) * P::kColumns + my_column + j * 4 * kLaneColumns);
          }
#pragma unroll
          for (int i = 0; i < P::kMyRows; ++i) {
#pragma unroll
            for (int j = 0; j < P::kMyColumns; ++j) {
              float& sum = sums[i * P::kMyColumns + j];
              sum = fmaf(element(a[i], k), element(b[j / 4], j % 4), sum);
            }
          }
        }
      }
    }
  };

  pipelined((depth + kDepth - 1) / kDepth, load, compute);

#pragma unroll
  for (int i = 0; i < P::kMyRows; ++i) {
    const int row = first_row + my_row + i * kLaneRows;
    if (row >= rows) continue;
    int pixel = row;
    if (D == Direction::grad_input && gridDim.z > 1) {
      const int across = row / horizontal.pixels;
      const int image = across / vertical.pixels;
      const int h = vertical.first + vertical.spacing * (across % vertical.pixels);
      const int w = horizontal.first + horizontal.spacing * (row % horizontal.pixels);
      pixel = (image * sides.result_height + h) * sides.result_width + w;
    }
#pragma unroll
    for (int j = 0; j < P::kMyColumns; j += 4) {
      const int column = first_column + my_column + j / 4 * 4 * kLaneColumns;
      const std::size_t position = static_cast<std::size_t>(pixel) * sides.columns + column;
      Pack<float, 4> four{};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        four.at[e] = sums[i * P::kMyColumns + j + e];
        if (g.bias != nullptr && column + e < sides.columns) four.at[e] += g.bias[column + e];
      }
      if constexpr (Vector) {
        if (column < sides.columns) store_sum<4>(g.result, g.addend, position, four);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (column + e < sides.columns) g.result[position + e] = add_to(g.addend, position + e, four.at[e]);
        }
      }
    }
  }
}

template <Direction D, typename P>
void launch_gather(cudaStream_t stream, const Gather& g) {
  const Sides sides = sides_of<D>(g.shape);
  // Of the phases of a strided data gradient, the first has the most pixels.
  const int down = D == Direction::forward ? 1 : g.shape.stride_height;
  const int across = D == Direction::forward ? 1 : g.shape.stride_width;
  const std::int64_t rows = std::int64_t{g.shape.batch} * blocks_for(sides.result_height, static_cast<unsigned>(down)) *
                            blocks_for(sides.result_width, static_cast<unsigned>(across));
  const dim3 blocks(blocks_for(rows, P::kRows), blocks_for(sides.columns, P::kColumns), static_cast<unsigned>(down * across));
  if (sides.channels % 4 == 0 && sides.columns % 4 == 0) {
    gather_kernel<D, P, true><<<blocks, P::kBlock, 0, stream>>>(g);
  } else {
    gather_kernel<D, P, false><<<blocks, P::kBlock, 0, stream>>>(g);
  }
  check_launch("gather_kernel");
}

template <Direction D>
void launch_tile(cudaStream_t stream, const Gather& g, GemmTile tile) {
  switch (tile) {
    case GemmTile::rows128_columns16:
      return launch_gather<D, Tile<128, 16, 8, 4, 6>>(stream, g);
    case GemmTile::rows64_columns32:
      return launch_gather<D, Tile<64, 32, 8, 4, 7>>(stream, g);
    case GemmTile::rows128_columns64:
      return launch_gather<D, Tile<128, 64, 8, 8, 3>>(stream, g);
  }
}

}  // namespace

GemmTile gemm_tile(std::int64_t rows, int columns) {
  if (columns <= 16) return GemmTile::rows128_columns16;
  // The largest tile needs the least memory traffic, if there is at least one for each of a Hopper's multiprocessors.
  if (columns > 32 && std::int64_t{blocks_for(rows, 128)} * blocks_for(columns, 64) >= 132) return GemmTile::rows128_columns64;
  return GemmTile::rows64_columns32;
}

void gemm_conv2d(cudaStream_t stream, const float* x, const float* weight, const float* bias, float* y, const ConvShape& shape,
                 GemmTile tile) {
  launch_tile<Direction::forward>(
      stream, {.source = x, .weight = weight, .bias = bias, .addend = nullptr, .result = y, .shape = shape}, tile);
}

void gemm_conv2d_grad_input(cudaStream_t stream, const float* dy, const float* weight, const float* addend, float* dx,
                            const ConvShape& shape, GemmTile tile) {
  launch_tile<Direction::grad_input>(
      stream, {.source = dy, .weight = weight, .bias = nullptr, .addend = addend, .result = dx, .shape = shape}, tile);
}

}  // namespace snug::backends::cuda::launch
