// A network with everything that a plan file and a snapshot must restore: convolutions in the backend's layout, batch norm with
// running statistics, dropout and augmentation that draw by seed and step, momentum.
#pragma once

#include <cstdint>

#include "frontend/graph_builder.h"
#include "plan/compile.h"

namespace snug::support {

struct SmallModel {
  DType dtype = DType::f32;
  std::int64_t channels = 16;
  std::int64_t classes = 5;
  double nonzero = 1;
  SparseOptions sparse = {};
};

inline constexpr std::int64_t kSmallBatch = 6;
inline constexpr std::int64_t kSmallImage = 8;

inline Plan small_plan(const Backend& backend, const SmallModel& model = {}) {
  frontend::GraphBuilder b("small", kSmallBatch / 2);
  ValueId x = b.images({.channels = 3, .height = kSmallImage, .width = kSmallImage, .crop_padding = 1});
  x = b.conv2d("conv1", x, {.out_channels = model.channels, .padding = 1});
  x = b.relu("relu1", b.batch_norm("bn1", x));
  x = b.conv2d("conv2", x, {.out_channels = model.channels, .padding = 1, .bias = true});
  x = b.dropout("dropout", b.relu("relu2", x), 0.3);
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), model.classes));
  return compile(std::move(b).finish(), backend,
                 {.batch = kSmallBatch, .methods = {.precision = model.dtype, .nonzero = model.nonzero}, .sparse = model.sparse});
}

}  // namespace snug::support
