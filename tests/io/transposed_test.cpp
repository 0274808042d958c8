#include "io/transposed.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

namespace snug::io {
namespace {

struct Case {
  std::int64_t rows, columns;
  std::size_t most_bytes, piece_bytes;
};

class TransposedMatrix : public testing::TestWithParam<Case> {};

TEST_P(TransposedMatrix, IsReadElementByElementHoweverLittleIsKept) {
  const auto [rows, columns, most_bytes, piece_bytes] = GetParam();
  std::vector<std::uint16_t> matrix(static_cast<std::size_t>(rows * columns));
  std::iota(matrix.begin(), matrix.end(), std::uint16_t{0});
  const std::span<const std::byte> bytes = std::as_bytes(std::span(matrix));
  Transposed transposed(
      rows, columns, sizeof(std::uint16_t),
      [&](std::uint64_t begin, std::span<std::byte> target) { std::memcpy(target.data(), bytes.data() + begin, target.size()); },
      most_bytes);
  std::vector<std::uint16_t> result(matrix.size());
  const std::span<std::byte> target = std::as_writable_bytes(std::span(result));
  for (std::size_t at = 0; at < target.size(); at += piece_bytes)
    transposed.read(at, target.subspan(at, std::min(piece_bytes, target.size() - at)));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      ASSERT_EQ(result[static_cast<std::size_t>(column * rows + row)], matrix[static_cast<std::size_t>(row * columns + column)]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TransposedMatrix,
                         testing::Values(Case{7, 5, 1U << 20U, 1000},  // at once
                                         Case{7, 5, 30, 4},            // two columns at a time, pieces across columns
                                         Case{7, 5, 1, 70},            // less room than a column
                                         Case{300, 211, 6000, 512}, Case{1, 9, 4, 2}, Case{9, 1, 4, 2}));

}  // namespace
}  // namespace snug::io
