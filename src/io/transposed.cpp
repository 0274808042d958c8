#include "io/transposed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/pieces.h"

namespace snug::io {

Transposed::Transposed(std::int64_t rows, std::int64_t columns, std::size_t element_bytes, Read read, std::size_t most_bytes)
    : rows_(static_cast<std::size_t>(rows)),
      columns_(static_cast<std::size_t>(columns)),
      element_bytes_(element_bytes),
      read_(std::move(read)),
      columns_at_once_(std::clamp<std::size_t>(most_bytes / (rows_ * element_bytes), 1, columns_)) {}

void Transposed::load(std::size_t first_column) {
  const std::size_t count = std::min(columns_at_once_, columns_ - first_column);
  const std::size_t row_bytes = columns_ * element_bytes_;
  band_.resize(count * rows_ * element_bytes_);
  first_column_ = first_column;
  std::vector<std::byte> piece;
  // Whole rows; one that is longer than a piece is one by itself.
  for_each_piece(rows_, std::max<std::size_t>(1, kPieceBytes / row_bytes), [&](std::size_t first_row, std::size_t rows) {
    piece.resize(rows * row_bytes);
    read_(first_row * row_bytes, piece);
    for (std::size_t column = 0; column < count; ++column) {
      const std::byte* from = piece.data() + (first_column + column) * element_bytes_;
      std::byte* to = band_.data() + (column * rows_ + first_row) * element_bytes_;
      for (std::size_t row = 0; row < rows; ++row) std::memcpy(to + row * element_bytes_, from + row * row_bytes, element_bytes_);
    }
  });
}

void Transposed::read(std::uint64_t begin, std::span<std::byte> target) {
  const std::size_t column_bytes = rows_ * element_bytes_;
  std::size_t done = 0;
  while (done < target.size()) {
    const std::size_t at = static_cast<std::size_t>(begin) + done;
    const std::size_t column = at / column_bytes;
    const bool is_loaded = !band_.empty() && column >= first_column_ && column < first_column_ + band_.size() / column_bytes;
    if (!is_loaded) load(column);
    const std::size_t in_band = at - first_column_ * column_bytes;
    const std::size_t count = std::min(target.size() - done, band_.size() - in_band);
    std::memcpy(target.data() + done, band_.data() + in_band, count);
    done += count;
  }
}

}  // namespace snug::io
