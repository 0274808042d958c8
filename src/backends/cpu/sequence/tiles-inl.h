// Products of small matrices of floats that lie in the caches, and what brings rows of stored numbers into them; for files that
// Highway compiles once for each instruction set. Columns come in whole vectors: kTileColumns are a multiple of any vector here.
#if defined(SNUG_SEQUENCE_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SEQUENCE_TILES_INL_H
#undef SNUG_SEQUENCE_TILES_INL_H
#else
#define SNUG_SEQUENCE_TILES_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include "backends/cpu/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TileFloats = hn::CappedTag<float, 16>;
using TileVector = hn::Vec<TileFloats>;

// A product keeps kProductRows rows of kProductVectors vectors in registers: of these there are 32 with AVX-512, else 16.
inline constexpr int kProductRows = hn::MaxLanes(TileFloats()) >= 16 ? 8 : 4;
inline constexpr int kProductVectors = 2;

HWY_INLINE std::int64_t tile_lanes() { return static_cast<std::int64_t>(hn::Lanes(TileFloats())); }
// Columns that are computed at a time.
HWY_INLINE std::int64_t panel_columns() { return kProductVectors * tile_lanes(); }

inline std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

// How a product begins: from zero, from what its result holds, or from that times a factor for each column.
enum class Start { zero, sum, scaled_sum };

// Element (row, k) of the left factor is at[row * row_step + k * depth_step]. One of the two steps is 1.
struct LeftFactor {
  const float* at;
  std::int64_t row_step, depth_step;
};
struct Matrix {
  float* at;
  std::int64_t step;  // between rows
};

// Columns [0, panel) of kProductRows rows.
template <Start kStart, int kVectors, bool kRowsAreTogether>
HWY_INLINE void add_products(LeftFactor left, const float* right, std::int64_t right_step, std::int64_t depth, Matrix result,
                             const float* factors) {
  const TileFloats d;
  TileVector sums[kProductRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kProductRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kStart == Start::zero) {
        sums[r][v] = hn::Zero(d);
      } else {
        sums[r][v] = hn::LoadU(d, result.at + r * result.step + v * tile_lanes());
        if constexpr (kStart == Start::scaled_sum) sums[r][v] = hn::Mul(sums[r][v], hn::LoadU(d, factors + v * tile_lanes()));
      }
    }
  }
  const float* from = left.at;
  for (std::int64_t k = 0; k < depth; ++k) {
    TileVector columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(d, right + v * tile_lanes());
#pragma GCC unroll 8
    for (int r = 0; r < kProductRows; ++r) {
      const TileVector factor = hn::Set(d, kRowsAreTogether ? from[r] : from[r * left.row_step]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
    from += kRowsAreTogether ? left.depth_step : 1;
    right += right_step;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kProductRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, result.at + r * result.step + v * tile_lanes());
  }
}

// One panel of the result's columns, of so many rows, rounded up to whole groups of kProductRows.
template <Start kStart, bool kRowsAreTogether, int kVectors = kProductVectors>
HWY_NOINLINE void multiply_panel(LeftFactor left, const float* right, std::int64_t right_step, std::int64_t rows,
                                 std::int64_t depth, Matrix result, const float* factors) {
  for (std::int64_t row = 0; row < rows; row += kProductRows) {
    add_products<kStart, kVectors, kRowsAreTogether>({left.at + row * left.row_step, left.row_step, left.depth_step}, right,
                                                     right_step, depth, {result.at + row * result.step, result.step}, factors);
  }
}

// All columns, a multiple of 16: where a vector of them is left over, that alone.
template <Start kStart, bool kRowsAreTogether>
HWY_INLINE void multiply(LeftFactor left, const float* right, std::int64_t right_step, std::int64_t rows, std::int64_t columns,
                         std::int64_t depth, Matrix result) {
  std::int64_t column = 0;
  for (; column + panel_columns() <= columns; column += panel_columns()) {
    multiply_panel<kStart, kRowsAreTogether>(left, right + column, right_step, rows, depth, {result.at + column, result.step},
                                             nullptr);
  }
  for (; column < columns; column += tile_lanes()) {
    multiply_panel<kStart, kRowsAreTogether, 1>(left, right + column, right_step, rows, depth, {result.at + column, result.step},
                                                nullptr);
  }
}

// Rows of `columns` stored numbers, `step` apart, as floats in rows of `width`; zeros behind the columns, and in the rows from
// `count` to `rows`.
template <typename T>
HWY_INLINE void load_rows(const T* from, std::int64_t step, std::int64_t count, std::int64_t columns, float* to,
                          std::int64_t width, std::int64_t rows) {
  for (std::int64_t row = 0; row < count; ++row, from += step, to += width) {
    for_each_vector(columns, [&](auto d, std::int64_t i) { hn::StoreU(load(d, from + i), d, to + i); });
    std::fill(to + columns, to + width, 0.0F);
  }
  std::fill_n(to, (rows - count) * width, 0.0F);
}

template <typename T>
HWY_INLINE void store_rows(const float* from, std::int64_t width, std::int64_t count, std::int64_t columns, T* to,
                           std::int64_t step) {
  for (std::int64_t row = 0; row < count; ++row, from += width, to += step)
    for_each_vector(columns, [&](auto d, std::int64_t i) { store(hn::LoadU(d, from + i), d, to + i); });
}

#if HWY_TARGET != HWY_SCALAR
inline constexpr std::int64_t kTransposed = hn::MaxLanes(TileFloats()) >= 8 ? 8 : 4;
using TransposedFloats = hn::CappedTag<float, kTransposed>;

// Rows of 8 numbers, or of 4, become columns, times a factor.
HWY_INLINE void transpose_square(const float* from, std::int64_t from_step, float factor, float* to, std::int64_t to_step) {
  const TransposedFloats d;
  const hn::Repartition<double, TransposedFloats> pairs;
  using Vector = hn::Vec<TransposedFloats>;
  const auto scale = hn::Set(d, factor);
  Vector quads[kTransposed];
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < kTransposed; i += 4) {
    Vector rows[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) rows[r] = hn::Mul(hn::LoadU(d, from + (i + r) * from_step), scale);
    const auto lower01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));
    const auto lower23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
    const auto upper01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
    const auto upper23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
    quads[i] = hn::BitCast(d, hn::InterleaveLower(pairs, lower01, lower23));
    quads[i + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, lower01, lower23));
    quads[i + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, upper01, upper23));
    quads[i + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, upper01, upper23));
  }
  if constexpr (kTransposed == 4) {
    for (int c = 0; c < 4; ++c) hn::StoreU(quads[c], d, to + c * to_step);
  } else {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      hn::StoreU(hn::ConcatLowerLower(d, quads[c + 4], quads[c]), d, to + c * to_step);
      hn::StoreU(hn::ConcatUpperUpper(d, quads[c + 4], quads[c]), d, to + (c + 4) * to_step);
    }
  }
}
#else
inline constexpr std::int64_t kTransposed = 1;
inline void transpose_square(const float* from, std::int64_t /*from_step*/, float factor, float* to, std::int64_t /*to_step*/) {
  *to = *from * factor;
}
#endif

// to[column][row] = from[row][column] * factor; both counts are multiples of 8.
HWY_INLINE void transpose(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns, float factor,
                          float* to, std::int64_t to_step) {
  for (std::int64_t column = 0; column < columns; column += kTransposed)
    for (std::int64_t row = 0; row < rows; row += kTransposed)
      transpose_square(from + row * from_step + column, from_step, factor, to + column * to_step + row, to_step);
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
