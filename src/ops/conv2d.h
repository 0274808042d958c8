// The geometry of a 2-D convolution, read once from shapes and attributes; shape inference and kernels share it.
#pragma once

#include <cstdint>

#include "ir/attributes.h"
#include "ir/type.h"

namespace snug::ops {

struct Conv2dGeometry {
  std::int64_t batch, in_channels, in_height, in_width;
  std::int64_t out_channels, out_height, out_width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t stride_height, stride_width;
  std::int64_t padding_height, padding_width;
  std::int64_t dilation_height, dilation_width;
  std::int64_t groups;

  // UserError when input [N,C,H,W] and weight [O,C/groups,kh,kw] do not go together.
  static Conv2dGeometry from(const Shape& input, const Shape& weight, const Attributes& attributes);

  std::int64_t multiply_adds() const;
};

// floor((input + 2 padding - dilation (kernel - 1) - 1) / stride) + 1; UserError when the window does not fit.
std::int64_t window_output(std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation);

}  // namespace snug::ops
