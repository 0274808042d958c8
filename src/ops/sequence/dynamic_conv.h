// The geometry of lightweight and dynamic convolutions, read once from shapes and attributes; shape inference and the kernels of
// all backends share it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/attributes.h"
#include "ir/type.h"

namespace snug::ops {

struct DynamicConvGeometry {
  std::int64_t examples, length;  // N and T
  std::int64_t columns, heads;    // D and H
  std::int64_t kernel;            // K
  std::int64_t left;              // how far before its own position a row's first tap lies

  // UserError when x [R,D] and the attributes do not go together.
  static DynamicConvGeometry from(const Shape& x, const Attributes& attributes);

  std::int64_t rows() const { return examples * length; }
  std::int64_t head_size() const { return columns / heads; }
  Shape shared_weight() const { return {heads, kernel}; }  // of lightweight_conv
  Shape weight_of_rows() const;                            // of dynamic_conv

  // Numbers of a weight of this shape from one row's kernels to the next row's: none where all rows share them.
  std::int64_t weights_of_row(const Shape& weight) const { return weight == shared_weight() ? 0 : heads * kernel; }

  // Of a position in its example: the taps that lie within it. Tap k sees position + k - left.
  std::int64_t first_tap(std::int64_t position) const { return std::clamp<std::int64_t>(left - position, 0, kernel); }
  std::int64_t end_of_taps(std::int64_t position) const { return std::min(kernel, length + left - position); }
  // The positions whose taps see it; the first of them does so with the highest tap.
  std::int64_t first_reader(std::int64_t position) const { return std::max<std::int64_t>(0, position + left - kernel + 1); }
  std::int64_t end_of_readers(std::int64_t position) const { return std::min(length, position + left + 1); }
};

}  // namespace snug::ops
