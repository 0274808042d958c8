// The geometry of batch normalization; shape inference and kernels share it.
#pragma once

#include <cstdint>

#include "ir/attributes.h"
#include "ir/type.h"

namespace snug::ops {

// x is [N,C,H,W] or [N,C]. Statistics are taken over groups of `group_size` consecutive rows, which are examples unless
// rows_per_example says otherwise: one group is ordinary batch norm; several groups in one batch give the result of that many
// microbatches.
struct BatchNormGeometry {
  std::int64_t batch, channels, pixels;  // batch: rows; pixels: H*W, or 1
  std::int64_t group_size, groups;       // groups: ceil(batch / group_size)
  std::int64_t rows_per_example = 1;

  static BatchNormGeometry from(const Shape& x, const Attributes& attributes);

  // Rows that are not padding when the first `valid_examples` examples are valid: of all, and of group g.
  std::int64_t valid_rows(std::int64_t valid_examples) const;
  std::int64_t valid_in_group(std::int64_t g, std::int64_t valid_examples) const;
};

// Attribute relu=1: negative results become zero.
bool batch_norm_with_relu(const Attributes& attributes);

}  // namespace snug::ops
