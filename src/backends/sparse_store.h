// The sparse store (ops/sparse/sparse.h) for kernels on the host: packed columns, and how a pattern is drawn. The same code for
// every element type and backend, so that a pattern never depends on them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "ops/random_draws.h"
#include "ops/sparse/sparse.h"

namespace snug::backends {

// Column k of a packed list. The store keeps a few bytes after the last, so that 32 bits can be read from any byte on.
inline std::int64_t column_at(const std::uint8_t* columns, int bits, std::int64_t k) {
  const std::int64_t bit = k * bits;
  std::uint32_t word = 0;
  std::memcpy(&word, columns + bit / 8, sizeof word);
  return static_cast<std::int64_t>((word >> static_cast<unsigned>(bit % 8)) & ((1U << static_cast<unsigned>(bits)) - 1U));
}

inline void put_column(std::uint8_t* columns, int bits, std::int64_t k, std::int64_t column) {
  const std::int64_t bit = k * bits;
  const auto shift = static_cast<unsigned>(bit % 8);
  const std::uint32_t mask = ((1U << static_cast<unsigned>(bits)) - 1U) << shift;
  std::uint32_t word = 0;
  std::memcpy(&word, columns + bit / 8, sizeof word);
  word = (word & ~mask) | (static_cast<std::uint32_t>(column) << shift);
  std::memcpy(columns + bit / 8, &word, sizeof word);
}

// The random words of a walk over all places, in either direction: four come from one block.
template <typename BlockOf>
class PlaceWords {
 public:
  explicit PlaceWords(BlockOf block_of) : block_of_(block_of) {}
  std::uint32_t operator()(std::uint64_t place) {
    if (place / 4 != at_) {
      at_ = place / 4;
      block_ = block_of_(at_);
    }
    return block_.word[place % 4];
  }

 private:
  BlockOf block_of_;
  std::uint64_t at_ = ~std::uint64_t{0};
  PhiloxBlock block_{};
};

// Elements of any type as real numbers; backends add their own types.
inline double real_of(double value) { return value; }
inline double real_of(float value) { return value; }
inline void put_real(double& place, double value) { place = value; }
inline void put_real(float& place, double value) { place = static_cast<float>(value); }

// One tensor of the store for a kernel that reads or writes it.
template <typename T>
struct SparseRows {
  T* values;
  const std::uint8_t* columns;
  const std::int32_t* rows;  // of the tensor's first row
  int bits;

  std::int64_t begin(std::int64_t row) const { return rows[row]; }
  std::int64_t end(std::int64_t row) const { return rows[row + 1]; }
  std::int64_t column(std::int64_t k) const { return column_at(columns, bits, k); }
};

// Draws the initial values of some rows of a tensor.
using InitialDraw = double (*)(std::uint64_t seed, std::uint64_t key, std::uint64_t element);
template <typename T>
void draw_values(const ops::SparseSlot& slot, const SparseRows<T>& rows, std::int64_t begin, std::int64_t end, InitialDraw draw,
                 std::uint64_t seed, std::uint64_t key, double spread) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k)
      put_real(rows.values[k], spread * draw(seed, key, static_cast<std::uint64_t>(slot.logical_element(row, rows.column(k)))));
  }
}

// A random pattern with `nonzeros[t]` values in tensor t.
void draw_pattern(const ops::SparseGrid& grid, std::span<const std::int64_t> nonzeros, std::uint64_t seed,
                  std::span<std::uint8_t> columns, std::int32_t* rows);

}  // namespace snug::backends
