// A matrix read in the order of its transpose, some columns at a time: no copy of a large matrix is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace snug::io {

class Transposed {
 public:
  // Fills `target` with the bytes of the matrix, row by row, from byte `begin` on.
  using Read = std::function<void(std::uint64_t begin, std::span<std::byte> target)>;
  // All of a matrix is read once for each `most_bytes` of it: as many of its columns are kept in memory.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20U;

  Transposed(std::int64_t rows, std::int64_t columns, std::size_t element_bytes, Read read, std::size_t most_bytes = kMostBytes);

  // The same of its transpose. Cheap only where every range follows the one before.
  void read(std::uint64_t begin, std::span<std::byte> target);

 private:
  void load(std::size_t first_column);

  std::size_t rows_;
  std::size_t columns_;
  std::size_t element_bytes_;
  Read read_;
  std::size_t columns_at_once_;
  std::size_t first_column_ = 0;  // of those in `band_`
  std::vector<std::byte> band_;   // column after column
};

}  // namespace snug::io
