#include "train/logical_order.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/pieces.h"
#include "io/elements.h"

namespace snug::train {

namespace {

// The same value with `rows` rows.
Type with_rows(Type type, std::size_t rows) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[0] = static_cast<std::int64_t>(rows);
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

std::size_t logical_bytes_of(Type type) {
  type.layout = Layout::row_major();
  return static_cast<std::size_t>(type.bytes().count());
}

}  // namespace

LogicalOrder::LogicalOrder(const Type& type, const Backend& backend, Arena& arena, Bytes offset)
    : type_(type), backend_(backend), arena_(arena), offset_(offset), bytes_(logical_bytes_of(type)) {
  const std::size_t bits = static_cast<std::size_t>(bits_per_element(type.dtype));
  if (type.layout.kind == Layout::Kind::opaque) {
    SNUG_CHECK(arena.host_accessible() && backend.read_opaque != nullptr && backend.write_opaque != nullptr,
               "{} cannot be read in the arena of the {} backend", to_string(type), backend.name);
    element_bytes_ = bits / 8;
  }
  // With fewer dimensions the two orders are the same.
  is_channels_last_ = type.layout.kind == Layout::Kind::channels_last && type.shape.rank() > 2 && bytes_ > 0;
  if (!is_channels_last_) return;
  SNUG_CHECK(bits >= 8, "elements of {} cannot be put in another order", name_of(type.dtype));
  element_bytes_ = bits / 8;
  channels_ = static_cast<std::size_t>(type.shape[1]);
  row_bytes_ = bytes_ / static_cast<std::size_t>(type.shape[0]);
  rest_ = row_bytes_ / element_bytes_ / channels_;
}

std::size_t LogicalOrder::piece_bytes() const {
  if (!is_channels_last_) return kPieceBytes;
  // Rows cut in two are copied column by column, which is slow on a GPU.
  const std::size_t channel_bytes = rest_ * element_bytes_;
  for (const std::size_t unit : {row_bytes_, channel_bytes}) {
    if (unit <= kPieceBytes) return kPieceBytes / unit * unit;
  }
  return kPieceBytes;
}

template <typename WholeRows, typename Columns>
void LogicalOrder::for_each_part(std::size_t begin, std::size_t size, const WholeRows& whole_rows, const Columns& columns) const {
  std::size_t done = 0;
  while (done < size) {
    const std::size_t at = begin + done;
    const std::size_t left = size - done;
    if (at % row_bytes_ == 0 && left >= row_bytes_) {
      const std::size_t rows = std::clamp<std::size_t>(kPieceBytes / row_bytes_, 1, left / row_bytes_);
      if (rows * row_bytes_ <= kPieceBytes) {
        whole_rows(at / row_bytes_, rows, done);
        done += rows * row_bytes_;
        continue;
      }
    }
    // Whole channels of the row, or a part of one.
    const std::size_t row = at / row_bytes_;
    const std::size_t element = at % row_bytes_ / element_bytes_;
    const std::size_t elements = std::min(left, row_bytes_ - at % row_bytes_) / element_bytes_;
    const std::size_t channel = element / rest_;
    const std::size_t first = element % rest_;
    const bool whole = first == 0 && elements >= rest_;
    const std::size_t side_by_side = whole ? elements / rest_ : 1;
    const std::size_t columns_here = whole ? rest_ : std::min(rest_ - first, elements);
    for (std::size_t k = 0; k < columns_here; ++k) {
      columns(row * channels_ * rest_ + (first + k) * channels_ + channel, side_by_side, done + k * element_bytes_);
    }
    done += side_by_side * columns_here * element_bytes_;
  }
}

void LogicalOrder::read(std::size_t begin, std::span<std::byte> target) const {
  SNUG_CHECK(begin + target.size() <= bytes_ && begin % element_bytes_ == 0 && target.size() % element_bytes_ == 0,
             "bytes {} to {} are not a range of {}", begin, begin + target.size(), to_string(type_));
  if (type_.layout.kind == Layout::Kind::opaque) {
    return backend_.read_opaque(type_, arena_.data() + offset_.count(), static_cast<std::int64_t>(begin / element_bytes_),
                                target);
  }
  if (!is_channels_last_) return arena_.read(place(begin), target);
  std::vector<std::byte> stored;
  for_each_part(
      begin, target.size(),
      [&](std::size_t row, std::size_t rows, std::size_t at) {
        stored.resize(rows * row_bytes_);
        arena_.read(place(row * row_bytes_), stored);
        io::to_logical_order(with_rows(type_, rows), stored, target.subspan(at, stored.size()));
      },
      [&](std::size_t element, std::size_t count, std::size_t at) {
        stored.resize(count * element_bytes_);
        arena_.read(place(element * element_bytes_), stored);
        for (std::size_t i = 0; i < count; ++i) {
          std::memcpy(target.data() + at + i * rest_ * element_bytes_, stored.data() + i * element_bytes_, element_bytes_);
        }
      });
}

void LogicalOrder::write(std::size_t begin, std::span<const std::byte> source) {
  SNUG_CHECK(begin + source.size() <= bytes_ && begin % element_bytes_ == 0 && source.size() % element_bytes_ == 0,
             "bytes {} to {} are not a range of {}", begin, begin + source.size(), to_string(type_));
  if (type_.layout.kind == Layout::Kind::opaque) {
    return backend_.write_opaque(type_, arena_.data() + offset_.count(), static_cast<std::int64_t>(begin / element_bytes_),
                                 source);
  }
  if (!is_channels_last_) return arena_.write(place(begin), source);
  std::vector<std::byte> stored;
  for_each_part(
      begin, source.size(),
      [&](std::size_t row, std::size_t rows, std::size_t at) {
        stored.resize(rows * row_bytes_);
        io::from_logical_order(with_rows(type_, rows), source.subspan(at, stored.size()), stored);
        arena_.write(place(row * row_bytes_), stored);
      },
      [&](std::size_t element, std::size_t count, std::size_t at) {
        stored.resize(count * element_bytes_);
        for (std::size_t i = 0; i < count; ++i) {
          std::memcpy(stored.data() + i * element_bytes_, source.data() + at + i * rest_ * element_bytes_, element_bytes_);
        }
        arena_.write(place(element * element_bytes_), stored);
      });
}

void LogicalOrder::read_in_pieces(std::size_t begin, std::size_t size,
                                  const std::function<void(std::span<const std::byte>)>& use) const {
  std::vector<std::byte> buffer(std::min(size, piece_bytes()));
  for_each_piece(size, piece_bytes(), [&](std::size_t done, std::size_t count) {
    const std::span<std::byte> piece = std::span(buffer).first(count);
    read(begin + done, piece);
    use(piece);
  });
}

void LogicalOrder::write_in_pieces(std::size_t begin, std::size_t size, const std::function<void(std::span<std::byte>)>& fill) {
  std::vector<std::byte> buffer(std::min(size, piece_bytes()));
  for_each_piece(size, piece_bytes(), [&](std::size_t done, std::size_t count) {
    const std::span<std::byte> piece = std::span(buffer).first(count);
    fill(piece);
    write(begin + done, piece);
  });
}

}  // namespace snug::train
