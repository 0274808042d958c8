// Operands as typed elements: by logical index through strides, or by position in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/kernel.h"

namespace snug::backends::reference {

// An operand by logical index, whatever its layout. T is const for inputs.
template <typename T>
struct View {
  T* data = nullptr;
  std::array<std::int64_t, Shape::kMaxRank> strides{};  // 0 for missing dimensions

  std::int64_t offset(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    return i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3];
  }
  T& operator()(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    return data[offset(i, j, k, l)];
  }
};

template <typename T>
View<T> view_of(const Operand& operand) {
  return {.data = reinterpret_cast<T*>(operand.data), .strides = strides_of(operand.type)};
}

// [N,C] or [N,C,H,W] with the dimensions after the channel taken as one: in both layouts they have one stride.
struct PixelShape {
  std::int64_t batch, channels, pixels;

  explicit PixelShape(const Shape& shape)
      : batch(shape[0]), channels(shape[1]), pixels(shape.elements() / (shape[0] * shape[1])) {}
};

// Indexed by example, channel, pixel.
template <typename T>
View<T> pixel_view_of(const Operand& operand) {
  const auto strides = strides_of(operand.type);
  const std::size_t rank = operand.type.shape.rank();
  return {.data = reinterpret_cast<T*>(operand.data), .strides = {strides[0], strides[1], rank > 2 ? strides[rank - 1] : 0}};
}

// From the position of an element in one value to its position in another of the same shape: the identity when their layouts
// agree.
class PositionMap {
 public:
  PositionMap(const Type& from, const Type& to) : PositionMap(from, to.layout.kind) {}

  static PositionMap to_row_major(const Type& from) { return PositionMap(from, Layout::Kind::row_major); }

  std::int64_t operator()(std::int64_t position) const {
    if (same_) return position;
    // Within an example, going from one layout to the other transposes the matrix of channels and pixels.
    const std::int64_t example = position / example_size_;
    const std::int64_t within = position % example_size_;
    return example * example_size_ + within % inner_ * (example_size_ / inner_) + within / inner_;
  }

 private:
  PositionMap(const Type& from, Layout::Kind to) : same_(from.layout.kind == to || from.shape.rank() < 3) {
    if (same_) return;
    const std::int64_t channels = from.shape[1];
    example_size_ = from.elements() / from.shape[0];
    inner_ = from.layout.kind == Layout::Kind::channels_last ? channels : example_size_ / channels;
  }

  bool same_;
  std::int64_t example_size_ = 1;
  std::int64_t inner_ = 1;  // elements in the innermost stretch of `from`: channels or pixels
};

// Packed elements, by position: bit i is bit i % 8 of byte i / 8; of two numbers of 4 bits the first is the low half.
inline bool bit_at(const std::uint8_t* bytes, std::int64_t i) {
  return ((static_cast<unsigned>(bytes[i / 8]) >> (i % 8)) & 1U) != 0;
}
inline std::int64_t nibble_at(const std::uint8_t* bytes, std::int64_t i) {
  return (static_cast<unsigned>(bytes[i / 2]) >> (i % 2 * 4)) & 0xFU;
}

}  // namespace snug::backends::reference
