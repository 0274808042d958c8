// A network with everything a snapshot has to bring back: convolutions in the backend's layout, batch norm with running
// statistics, dropout and augmentation that draw by seed and step, momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/cpu.h"
#include "frontend/graph_builder.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/state_bytes.h"
#include "train/session.h"

namespace snug::train {

struct SmallModel {
  DType dtype = DType::f32;
  std::int64_t channels = 16;
  std::int64_t classes = 5;
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
  return compile(std::move(b).finish(), backend, {.batch = kSmallBatch, .precision = model.dtype, .sparse = model.sparse});
}

inline Session small_session(std::uint64_t seed = 7, const SmallModel& model = {}) {
  const Backend backend = backends::cpu_backend(1);
  Session session(small_plan(backend, model), backend, seed);
  session.set_learning_rate(0.05);
  return session;
}

// One step on images that depend on the step alone.
inline double small_step(Session& session) {
  std::vector<std::byte> images(static_cast<std::size_t>(kSmallBatch * kSmallImage * kSmallImage * 3));
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<std::byte>((i * 2654435761U + session.step() * 97) >> 7U & 0xFFU);
  for (std::int32_t i = 0; i < kSmallBatch; ++i) labels.push_back((i + static_cast<std::int32_t>(session.step())) % 5);
  return session.train_step(support::Labeled(images, labels)).loss;
}

// Every state that outlives a step; gradients, too, which must be zero.
inline std::vector<std::byte> all_bytes(const Session& session) { return support::state_bytes(session); }

}  // namespace snug::train
