// A convolution's geometry as device code takes it: indices there are 32 bits.
#pragma once

#include "backends/cuda/convolution/direct.h"
#include "ops/conv2d.h"

namespace snug::backends::cuda {

inline launch::ConvShape conv_shape(const Shape& input, const Shape& weight, const Attributes& attributes) {
  const auto g = ops::Conv2dGeometry::from(input, weight, attributes);
  const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  return {.batch = narrow(g.batch),
          .in_channels = narrow(g.in_channels),
          .in_height = narrow(g.in_height),
          .in_width = narrow(g.in_width),
          .out_channels = narrow(g.out_channels),
          .out_height = narrow(g.out_height),
          .out_width = narrow(g.out_width),
          .kernel_height = narrow(g.kernel_height),
          .kernel_width = narrow(g.kernel_width),
          .stride_height = narrow(g.stride_height),
          .stride_width = narrow(g.stride_width),
          .padding_height = narrow(g.padding_height),
          .padding_width = narrow(g.padding_width),
          .dilation_height = narrow(g.dilation_height),
          .dilation_width = narrow(g.dilation_width),
          .groups = narrow(g.groups)};
}

}  // namespace snug::backends::cuda
