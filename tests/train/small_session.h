// The small network of support/small_plan.h, in a session.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/cpu.h"
#include "support/labeled.h"
#include "support/small_plan.h"
#include "support/state_bytes.h"
#include "train/session.h"

namespace snug::train {

using support::kSmallBatch;
using support::kSmallImage;
using support::small_plan;
using support::SmallModel;

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
