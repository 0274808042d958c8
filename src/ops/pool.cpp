#include "ops/pool.h"

#include "base/error.h"
#include "ops/common.h"
#include "ops/conv2d.h"

namespace snug::ops {

PoolGeometry PoolGeometry::from(const Shape& input, const Attributes& attributes) {
  if (input.rank() != 4) throw_user_error("the input is {}; it must have 4 dimensions (N,C,H,W)", to_string(input));
  const auto& kernel = attributes.integers("kernel");
  const auto& stride = attributes.integers("stride");
  const auto& padding = attributes.integers("padding");
  if (kernel.size() != 2 || stride.size() != 2 || padding.size() != 2) {
    throw_user_error("kernel, stride and padding take two numbers each (height, width)");
  }
  for (int i = 0; i < 2; ++i) {
    // A window that lies entirely in padding would have no largest element.
    if (padding[i] > kernel[i] / 2) throw_user_error("padding {} is more than half of the window {}", padding[i], kernel[i]);
  }
  return {.batch = input[0],
          .channels = input[1],
          .in_height = input[2],
          .in_width = input[3],
          .out_height = window_output(input[2], kernel[0], stride[0], padding[0], 1),
          .out_width = window_output(input[3], kernel[1], stride[1], padding[1], 1),
          .kernel_height = kernel[0],
          .kernel_width = kernel[1],
          .stride_height = stride[0],
          .stride_width = stride[1],
          .padding_height = padding[0],
          .padding_width = padding[1]};
}

std::int64_t PoolGeometry::operations() const { return count_operations(output().elements(), kernel_height * kernel_width); }

}  // namespace snug::ops
