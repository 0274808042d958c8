// What the kernels of attention on tensor cores share: a block of kTileThreads threads, tiles in shared memory, and the products
// of a warp. `Machine` is the GPU (tensor_core.cuh) or the tests' emulation of one.
//
// Fragments are those of mma.m16n8k16. With g = lane / 4 and t = lane % 4, a lane's four sums of a product of 16 rows and 8
// columns are those of row g (the first two) and g + 8, columns 2t and 2t + 1; so the sums of one product, rounded, are the left
// operand of the next without any exchange.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/sequence/attention_rules.cuh"
#include "backends/cuda/sequence/attention_shape.h"

#if defined(__CUDACC__)
#define SNUG_DEVICE __device__ __forceinline__
#define SNUG_UNROLL _Pragma("unroll")
#define SNUG_NOT_UNROLLED _Pragma("unroll 1")
#else
#define SNUG_DEVICE inline
#define SNUG_UNROLL
#define SNUG_NOT_UNROLLED
#endif

namespace snug::backends::cuda {

inline constexpr int kTileWarps = 4;
inline constexpr int kTileThreads = kTileWarps * 32;

// A warp has two tiles of 16 rows, so that what it reads of shared memory serves two products, where its registers suffice.
template <int D>
inline constexpr int kRowTiles = D <= 64 ? 2 : 1;
template <int D>
inline constexpr int kWarpRows = 16 * kRowTiles<D>;
// Of one block, which keeps them, and of what it goes through, in two buffers.
template <int D>
inline constexpr int kOwnRows = kTileWarps* kWarpRows<D>;
inline constexpr int kPassingRows = 64;

// Sums of a warp: so many tiles of 16 rows, and of 8 columns.
template <int RowTiles, int ColumnTiles>
struct Sums {
  float at[RowTiles][ColumnTiles][4];

  SNUG_DEVICE float (&operator[](int r))[ColumnTiles][4] { return at[r]; }
  SNUG_DEVICE const float (&operator[](int r) const)[ColumnTiles][4] { return at[r]; }

  SNUG_DEVICE void clear() {
    SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) {
      SNUG_UNROLL for (int c = 0; c < ColumnTiles; ++c) { SNUG_UNROLL for (int e = 0; e < 4; ++e) at[r][c][e] = 0; }
    }
  }
};

// Rows of D numbers in shared memory. Within a row, pieces of 16 bytes are reordered so that eight rows' pieces of one number, as
// fragments are read, lie in different banks.
template <typename Machine, typename T, int D>
class Tile {
 public:
  SNUG_DEVICE explicit Tile(T* first) : first_(first) {}

  SNUG_DEVICE T* piece(int row, int number) const {
    const int other = D % 64 == 0 ? row & 7 : row >> 1 & 3;
    return first_ + row * D + (number ^ other) * 8;
  }

  // Rows `begin` on of a matrix whose rows are `stride` apart; zeros for rows from `end` on, and columns beyond `columns`.
  template <int Rows>
  SNUG_DEVICE void load(const T* matrix, std::uint32_t stride, int begin, int end, int columns) const {
    constexpr int kPieces = D / 8;
    static_assert(Rows * kPieces % kTileThreads == 0);
    SNUG_UNROLL for (int i = 0; i < Rows * kPieces / kTileThreads; ++i) {
      const int at = i * kTileThreads + Machine::thread();
      const int row = at / kPieces;
      const int number = at % kPieces;
      const bool valid = begin + row < end && number * 8 < columns;
      // Values have less than 2^31 elements here. Where nothing is read, the address may be anywhere.
      const std::uint32_t offset = static_cast<std::uint32_t>(begin + row) * stride + static_cast<std::uint32_t>(number) * 8;
      Machine::copy16(piece(row, number), matrix + offset, valid);
    }
  }

  // A left operand: 16 rows and 16 columns.
  SNUG_DEVICE void left(std::uint32_t (&to)[4], int row, int column) const {
    const int lane = Machine::thread() % 32;
    Machine::load_matrices(to, piece(row + lane % 16, column / 8 + lane / 16));
  }
  // Two right operands, of the transposed tile: 16 columns, 8 rows each.
  SNUG_DEVICE void right_of_transposed(std::uint32_t (&to)[4], int row, int column) const {
    const int lane = Machine::thread() % 32;
    Machine::load_matrices(to, piece(row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2));
  }
  // Two right operands: 16 rows, 8 columns each.
  SNUG_DEVICE void right(std::uint32_t (&to)[4], int row, int column) const {
    const int lane = Machine::thread() % 32;
    Machine::load_transposed(to, piece(row + lane % 16, column / 8 + lane / 16));
  }

  // Writes a warp's sums times the factors of their rows, from `row` of this tile on, and from there to rows `position` on of a
  // matrix, below `end`. Nothing else may read these rows of the tile.
  template <int RowTiles>
  SNUG_DEVICE void store(const Sums<RowTiles, D / 8>& sums, const float (&factors)[RowTiles][2], int row, T* matrix,
                         std::uint32_t stride, int position, int end, int columns) const {
    const int lane = Machine::thread() % 32;
    Machine::sync_warp();
    SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) {
      SNUG_UNROLL for (int c = 0; c < D / 8; ++c) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          const float factor = factors[r][half];
          const std::uint32_t pair = Machine::template pack<T>(sums[r][c][2 * half] * factor, sums[r][c][2 * half + 1] * factor);
          Machine::store_pair(piece(row + r * 16 + half * 8 + lane / 4, c) + lane % 4 * 2, pair);
        }
      }
    }
    Machine::sync_warp();
    constexpr int kPieces = D / 8;
    for (int at = lane; at < RowTiles * 16 * kPieces; at += 32) {
      const int down = at / kPieces;
      const int number = at % kPieces;
      if (position + down < end && number * 8 < columns)
        Machine::store16(matrix + static_cast<std::size_t>(position + down) * stride + number * 8, piece(row + down, number));
    }
  }

 private:
  T* first_;
};

// Left operands in registers: all columns of a warp's rows.
template <int D>
struct HeldRows {
  std::uint32_t at[kRowTiles<D>][D / 16][4];

  template <typename Tile>
  SNUG_DEVICE void load(const Tile& tile, int row) {
    SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
      SNUG_UNROLL for (int k = 0; k < D / 16; ++k) tile.left(at[r][k], row + r * 16, k * 16);
    }
  }
  SNUG_DEVICE void left(std::uint32_t (&to)[4], int r, int k) const {
    SNUG_UNROLL for (int i = 0; i < 4; ++i) to[i] = at[r][k][i];
  }
};

// The same, read again for each product.
template <typename Tile>
struct TileRows {
  const Tile& tile;
  int row;

  SNUG_DEVICE void left(std::uint32_t (&to)[4], int r, int k) const { tile.left(to, row + r * 16, k * 16); }
};

// sums += a warp's rows times the rows of `tile` from `row` on, transposed.
template <int RowTiles, int ColumnTiles, typename Rows, typename Machine, typename T, int D>
SNUG_DEVICE void add_products_of_rows(Sums<RowTiles, ColumnTiles>& sums, const Rows& rows, const Tile<Machine, T, D>& tile,
                                      int row) {
  SNUG_UNROLL for (int k = 0; k < D / 16; ++k) {
    std::uint32_t left[RowTiles][4];
    SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) rows.left(left[r], r, k);
    SNUG_UNROLL for (int c = 0; c < ColumnTiles; c += 2) {
      std::uint32_t right[4];
      tile.right_of_transposed(right, row + c * 8, k * 16);
      SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) {
        Machine::template multiply_add<T>(sums[r][c], left[r], right[0], right[1]);
        Machine::template multiply_add<T>(sums[r][c + 1], left[r], right[2], right[3]);
      }
    }
  }
}

// sums += `factors`, rounded, times the rows of `tile` from `row` on.
template <int RowTiles, int ColumnTiles, int FactorTiles, typename Machine, typename T, int D>
SNUG_DEVICE void add_weighted_rows(Sums<RowTiles, ColumnTiles>& sums, const Sums<RowTiles, FactorTiles>& factors,
                                   const Tile<Machine, T, D>& tile, int row) {
  static_assert(ColumnTiles == D / 8);
  SNUG_UNROLL for (int k = 0; k < FactorTiles; k += 2) {
    std::uint32_t left[RowTiles][4];
    SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) {
      SNUG_UNROLL for (int i = 0; i < 4; ++i) left[r][i] =
          Machine::template pack<T>(factors[r][k + i / 2][i % 2 * 2], factors[r][k + i / 2][i % 2 * 2 + 1]);
    }
    SNUG_UNROLL for (int c = 0; c < D / 8; c += 2) {
      std::uint32_t right[4];
      tile.right(right, row + k * 8, c * 8);
      SNUG_UNROLL for (int r = 0; r < RowTiles; ++r) {
        Machine::template multiply_add<T>(sums[r][c], left[r], right[0], right[1]);
        Machine::template multiply_add<T>(sums[r][c + 1], left[r], right[2], right[3]);
      }
    }
  }
}

// The sum or the largest over the four lanes that share a row.
template <typename Machine>
SNUG_DEVICE float sum_of_row(float value) {
  value += Machine::from_lane_xor(value, 1);
  return value + Machine::from_lane_xor(value, 2);
}
template <typename Machine>
SNUG_DEVICE float max_of_row(float value) {
  value = fmaxf(value, Machine::from_lane_xor(value, 1));
  return fmaxf(value, Machine::from_lane_xor(value, 2));
}

// Of a lane's scores number e of the tiles r: those of the columns from `end` on, or before `begin`, become minus infinity.
template <typename Machine, int RowTiles, int ColumnTiles>
SNUG_DEVICE void hide_from(Sums<RowTiles, ColumnTiles>& scores, int r, int e, int end) {
  const int column = Machine::thread() % 4 * 2 + e % 2;
  SNUG_UNROLL for (int c = 0; c < ColumnTiles; ++c) {
    if (c * 8 >= end - column) scores[r][c][e] = -INFINITY;
  }
}
template <typename Machine, int RowTiles, int ColumnTiles>
SNUG_DEVICE void hide_before(Sums<RowTiles, ColumnTiles>& scores, int r, int e, int begin) {
  const int column = Machine::thread() % 4 * 2 + e % 2;
  SNUG_UNROLL for (int c = 0; c < ColumnTiles; ++c) {
    if (c * 8 < begin - column) scores[r][c][e] = -INFINITY;
  }
}

// One example and head, and a tile of its `length` rows. Blocks that run at the same time go through the same few heads, whose
// values then come from the cache; of these heads, the tiles with the most work come first.
struct TilePlace {
  std::uint32_t example, head;
  int tile;

  static constexpr std::uint32_t kHeadsTogether = 64;

  SNUG_DEVICE TilePlace(std::uint32_t block, std::uint32_t examples, std::uint32_t length, std::uint32_t heads, int rows,
                        bool last_first) {
    const std::uint32_t tiles = (length + rows - 1) / rows;
    const std::uint32_t all_heads = examples * heads;
    const std::uint32_t first_head = block / (tiles * kHeadsTogether) * kHeadsTogether;
    const std::uint32_t together = all_heads - first_head < kHeadsTogether ? all_heads - first_head : kHeadsTogether;
    const std::uint32_t within = block % (tiles * kHeadsTogether);
    example = (first_head + within % together) / heads;
    head = (first_head + within % together) % heads;
    const int number = static_cast<int>(within / together);
    tile = last_first ? static_cast<int>(tiles) - 1 - number : number;
  }
};

// Where the rows of one example and head begin.
struct TiledHeads {
  const launch::AttentionShape& shape;
  std::size_t first_row, first_key_row;

  SNUG_DEVICE TiledHeads(const launch::AttentionShape& of, std::uint32_t example)
      : shape(of), first_row(std::size_t{example} * of.length), first_key_row(std::size_t{example} * of.key_length) {}

  SNUG_DEVICE std::size_t query(std::uint32_t head) const {
    return first_row * shape.query_width + std::size_t{head} * shape.head_size;
  }
  SNUG_DEVICE std::size_t key(std::uint32_t kv_head) const {
    return first_key_row * shape.key_width + shape.first_key_column + std::size_t{kv_head} * shape.head_size;
  }
  SNUG_DEVICE std::size_t value(std::uint32_t kv_head) const { return key(shape.kv_heads + kv_head); }
  SNUG_DEVICE std::uint32_t result_width() const { return shape.heads * shape.head_size; }
  SNUG_DEVICE std::size_t result(std::uint32_t head) const {
    return first_row * result_width() + std::size_t{head} * shape.head_size;
  }
  // Of a number for each row and head.
  SNUG_DEVICE std::size_t statistic(std::uint32_t head) const { return first_row * shape.heads + head; }
};

// Which of a lane's four probabilities are kept, as bits: of a product whose rows are queries and whose columns are keys, from
// the lane's first query and (even) key. Where four keys share a block of random words, two lanes draw one block each for both.
template <typename Machine>
SNUG_DEVICE std::uint32_t kept_of_query_rows(const AttentionDraws& draws, int query, int key) {
  std::uint32_t words[4];
  if (draws.whole_blocks()) {
    const bool second = Machine::thread() % 2 != 0;  // draws for the lower query, and needs the block's upper words
    const PhiloxBlock block = draws.block(second ? query + 8 : query, second ? key - 2 : key);
    const std::uint32_t own[2] = {second ? block.word[2] : block.word[0], second ? block.word[3] : block.word[1]};
    const std::uint32_t other[2] = {Machine::from_lane_xor(second ? block.word[0] : block.word[2], 1),
                                    Machine::from_lane_xor(second ? block.word[1] : block.word[3], 1)};
    SNUG_UNROLL for (int i = 0; i < 2; ++i) {
      words[i] = second ? other[i] : own[i];
      words[2 + i] = second ? own[i] : other[i];
    }
  } else {
    SNUG_UNROLL for (int e = 0; e < 4; ++e) words[e] = draws.word(query + e / 2 * 8, key + e % 2);
  }
  std::uint32_t kept = 0;
  SNUG_UNROLL for (int e = 0; e < 4; ++e) kept |= draws.keeps(words[e]) ? 1U << e : 0U;
  return kept;
}

// The same where rows are keys and columns queries. Four lanes draw one block each for all.
template <typename Machine>
SNUG_DEVICE std::uint32_t kept_of_key_rows(const AttentionDraws& draws, int key, int query) {
  std::uint32_t kept = 0;
  if (draws.whole_blocks()) {
    const int mine = Machine::thread() % 32 / 4 % 4;  // the word that this lane needs of each block, and the block that it draws
    const PhiloxBlock block = draws.block(query + mine % 2, key - mine + mine / 2 * 8);
    SNUG_UNROLL for (int other = 0; other < 4; ++other) {
      const int e = mine ^ other;
      const std::uint32_t low = e % 2 == 0 ? block.word[0] : block.word[1];
      const std::uint32_t high = e % 2 == 0 ? block.word[2] : block.word[3];
      std::uint32_t word = e / 2 == 0 ? low : high;
      if (other != 0) word = Machine::from_lane_xor(word, other * 4);
      kept |= draws.keeps(word) ? 1U << e : 0U;
    }
  } else {
    SNUG_UNROLL for (int e = 0; e < 4; ++e) kept |= draws.keeps(draws.word(query + e % 2, key + e / 2 * 8)) ? 1U << e : 0U;
  }
  return kept;
}

}  // namespace snug::backends::cuda
