// The geometry of windowed pooling; shape inference and kernels of max and average pooling share it.
#pragma once

#include <cstdint>

#include "ir/attributes.h"
#include "ir/type.h"

namespace snug::ops {

struct PoolGeometry {
  std::int64_t batch, channels, in_height, in_width, out_height, out_width;
  std::int64_t kernel_height, kernel_width, stride_height, stride_width, padding_height, padding_width;

  // Attributes kernel, stride, padding: [h,w]. UserError when the windows do not fit or padding exceeds half a window.
  static PoolGeometry from(const Shape& input, const Attributes& attributes);

  Shape output() const { return {batch, channels, out_height, out_width}; }
  // One per element of each window.
  std::int64_t operations() const;
};

}  // namespace snug::ops
