// The rows that channels-last kernels process, from shapes of the program.
#pragma once

#include <algorithm>

#include "backends/cuda/norm/columns.h"
#include "ir/type.h"
#include "ops/batch_norm.h"

namespace snug::backends::cuda {

// [N,C,...] as rows of C channels, one group.
inline RowShape rows_of(const Shape& shape) {
  const auto batch = static_cast<std::uint32_t>(shape[0]);
  const auto channels = static_cast<std::uint32_t>(shape[1]);
  return {.batch = batch,
          .pixels = static_cast<std::uint32_t>(shape.elements() / (shape[0] * shape[1])),
          .channels = channels,
          .group_size = batch,
          .groups = 1};
}

inline RowShape rows_of(const ops::BatchNormGeometry& g) {
  return {.batch = static_cast<std::uint32_t>(g.batch),
          .pixels = static_cast<std::uint32_t>(g.pixels),
          .channels = static_cast<std::uint32_t>(g.channels),
          .group_size = static_cast<std::uint32_t>(std::min(g.group_size, g.batch)),
          .groups = static_cast<std::uint32_t>(g.groups),
          .rows_per_example = static_cast<std::uint32_t>(g.rows_per_example)};
}

inline std::size_t element_bytes(const Type& type) { return static_cast<std::size_t>(bits_per_element(type.dtype)) / 8; }

}  // namespace snug::backends::cuda
