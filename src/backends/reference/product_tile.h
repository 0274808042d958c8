// The inner loop of every convolution and matrix product here: a small tile of the result, on the stack, in double.
#pragma once

#include <cstdint>

namespace snug::backends::reference {

// sum(i, j) = sum over k of left(i, k) * right(k, j). The caller stages up to kDepth numbers k at a time, already converted to
// double, and adds them with multiply(). Each sum is computed separately and in the order of k, so its bits do not depend on its
// tile, the layout or the machine's vectors.
class ProductTile {
 public:
  static constexpr std::int64_t kRows = 32;
  static constexpr std::int64_t kColumns = 16;
  static constexpr std::int64_t kDepth = 32;

  void set_left(std::int64_t i, std::int64_t k, double value) { left_[i][k] = value; }
  // All columns must be set, even those that the result does not have (for example to 0; denormals are slow).
  void set_right(std::int64_t k, std::int64_t j, double value) { right_[k][j / 2][j % 2] = value; }

  // Row i of the left factor belongs to row `rows[i]` of the sums: rows that do not contribute (a tap in the padding) are left
  // out.
  void multiply(const std::int64_t* rows, std::int64_t row_count, std::int64_t depth) {
    for (std::int64_t i = 0; i < row_count; ++i) {
      Pair* sums = sums_[rows[i]];
      Pair row[kColumns / 2];  // stays in registers
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kColumns / 2; ++j) row[j] = sums[j];
      for (std::int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 8
        for (std::int64_t j = 0; j < kColumns / 2; ++j) row[j] += left_[i][k] * right_[k][j];
      }
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kColumns / 2; ++j) sums[j] = row[j];
    }
  }

  double sum(std::int64_t i, std::int64_t j) const { return sums_[i][j / 2][j % 2]; }

 private:
  // Two doubles, explicitly, because GCC 12 compiles the plain loop to slow code at -O3 (though not at -O2).
  using Pair [[gnu::vector_size(16)]] = double;

  Pair sums_[kRows][kColumns / 2] = {};
  double left_[kRows][kDepth];
  Pair right_[kDepth][kColumns / 2];
};

}  // namespace snug::backends::reference
