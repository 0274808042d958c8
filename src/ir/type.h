// What a value is made of: element type, logical shape and layout. Its size in bytes follows from these alone.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace snug {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i32, u8, u4, bit };

int bits_per_element(DType dtype);
bool is_floating(DType dtype);
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

// Logical dimensions, outermost first: activations are N,C,H,W and convolution weights O,I,H,W whatever their layout.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 6;
  // Far above any real tensor, and low enough that a size in bits never overflows 64 bits.
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 48U;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  // UserError when a dimension is not positive or there are too many of them.
  explicit Shape(std::span<const std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::int64_t elements() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

std::string to_string(const Shape& shape);

// How the elements of a logical shape lie in memory.
struct Layout {
  enum class Kind : std::uint8_t {
    row_major,      // in the order of the logical dimensions
    channels_last,  // dimension 1 innermost: NHWC for activations, OHWI for weights
    opaque,         // a library's own layout: only that library's kernels read it
  };
  Kind kind = Kind::row_major;
  std::string opaque_name;  // the library's name for it
  Bytes opaque_bytes;       // its size, padding included

  static Layout row_major() { return {}; }
  static Layout channels_last() { return {.kind = Kind::channels_last, .opaque_name = {}, .opaque_bytes = {}}; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = {};

  std::int64_t elements() const { return shape.elements(); }
  Bytes bytes() const;

  friend bool operator==(const Type&, const Type&) = default;
};

// "f32[100x16x32x32]/channels_last"
std::string to_string(const Type& type);

// Distance in elements between neighbors along each logical dimension; only for plain (not opaque) layouts.
std::array<std::int64_t, Shape::kMaxRank> strides_of(const Type& type);

}  // namespace snug
