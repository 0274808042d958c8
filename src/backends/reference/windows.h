// Which pixels a pooling window covers, and which windows cover a pixel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/pool.h"

namespace snug::backends::reference {

struct Range {
  std::int64_t begin, end;  // half open
};

// Along one dimension: the input positions of window `out`, without padding.
inline Range inputs_of(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t padding, std::int64_t in_size) {
  const std::int64_t begin = out * stride - padding;
  return {std::max<std::int64_t>(begin, 0), std::min(begin + kernel, in_size)};
}

// Along one dimension: the windows that cover input `in`, from the first that ends after it to the last that begins at or before
// it.
inline Range windows_over(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                          std::int64_t out_size) {
  const std::int64_t padded = in + padding;
  const std::int64_t begin = padded < kernel ? 0 : (padded - kernel) / stride + 1;
  return {begin, std::min(padded / stride + 1, out_size)};
}

inline Range rows_of_window(const ops::PoolGeometry& g, std::int64_t oh) {
  return inputs_of(oh, g.kernel_height, g.stride_height, g.padding_height, g.in_height);
}
inline Range columns_of_window(const ops::PoolGeometry& g, std::int64_t ow) {
  return inputs_of(ow, g.kernel_width, g.stride_width, g.padding_width, g.in_width);
}
inline Range windows_over_row(const ops::PoolGeometry& g, std::int64_t ih) {
  return windows_over(ih, g.kernel_height, g.stride_height, g.padding_height, g.out_height);
}
inline Range windows_over_column(const ops::PoolGeometry& g, std::int64_t iw) {
  return windows_over(iw, g.kernel_width, g.stride_width, g.padding_width, g.out_width);
}

}  // namespace snug::backends::reference
