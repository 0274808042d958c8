// The loss scale of fp16 follows the gradients: an overflow costs the step and half the scale, and the run goes on.
#include "train/loss_scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/zoo.h"
#include "small_session.h"
#include "support/files.h"
#include "support/labeled.h"
#include "train/snapshot.h"

namespace snug::train {

using support::TemporaryFolder;

namespace {

TEST(LossScale, DoublesAfterGoodStepsAndHalvesAfterAnOverflow) {
  LossScale scale{.scale = 8};
  scale.grow(3);
  scale.grow(3);
  EXPECT_EQ(scale, (LossScale{.scale = 8, .good_steps = 2}));
  scale.grow(3);
  EXPECT_EQ(scale, (LossScale{.scale = 16}));
  scale.grow(3);
  EXPECT_TRUE(scale.shrink());
  EXPECT_EQ(scale, (LossScale{.scale = 8, .good_steps = 0, .skipped_steps = 1}));
}

TEST(LossScale, EndsAtOneAndAtItsMost) {
  LossScale scale{.scale = 1.5};
  EXPECT_TRUE(scale.shrink());
  EXPECT_EQ(scale.scale, 1);
  EXPECT_FALSE(scale.shrink());
  EXPECT_EQ(scale.skipped_steps, 1U);
  LossScale large{.scale = LossScale::kMost};
  large.grow(1);
  EXPECT_EQ(large.scale, LossScale::kMost);
}

Session half_session(std::uint64_t grow_after, double scale = LossScale::kFirst, double clip_norm = 0) {
  const Backend backend = backends::cpu_backend(1);
  const Program graph = frontend::build_zoo_model("small-cnn", {.batch = 4, .image_size = 16});
  Session session(
      compile(graph, backend, {.methods = {.precision = DType::f16}, .update = {.clip_norm = clip_norm, .finds_overflow = true}}),
      backend, 3);
  session.set_learning_rate(0.01);
  session.set_loss_scale(scale);
  if (clip_norm > 0) session.set_clip_norm(clip_norm);
  session.follow_gradients(grow_after);
  return session;
}

Result step(Session& session) {
  std::vector<std::byte> images(4 * 16 * 16 * 3);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>((i * 2654435761U) >> 24U);
  const std::vector<std::int32_t> labels{0, 1, 2, 3};
  return session.train_step(support::Labeled(images, labels));
}

// A scale that no half can hold: the first gradients overflow until it has come down to where they fit.
TEST(LossScale, RecoversFromAnOverflow) {
  for (const double clip_norm : {0.0, 0.5}) {
    Session session = half_session(3, 0x1p32, clip_norm);
    const std::vector<double> weights = session.read_state("conv1.weight");
    int skipped = 0;
    double scale = session.loss_scale().scale;
    for (; skipped < 40; ++skipped) {
      const Result result = step(session);
      ASSERT_TRUE(std::isfinite(result.loss));
      if (!result.skipped) break;
      EXPECT_TRUE(result.overflowed);
      EXPECT_EQ(session.loss_scale().scale, scale /= 2);
      EXPECT_EQ(session.read_state("conv1.weight"), weights) << "an overflow must leave no trace";
      EXPECT_EQ(session.read_state("conv1.weight.momentum"), std::vector<double>(weights.size(), 0.0));
      EXPECT_EQ(session.read_state("conv1.weight.grad"), std::vector<double>(weights.size(), 0.0));
    }
    EXPECT_GT(skipped, 3);
    EXPECT_LT(skipped, 40);
    EXPECT_EQ(session.loss_scale().skipped_steps, static_cast<std::uint64_t>(skipped));
    EXPECT_NE(session.read_state("conv1.weight"), weights);
    step(session);
    EXPECT_EQ(session.loss_scale().scale, scale);
    EXPECT_FALSE(step(session).skipped);  // the third good one
    EXPECT_EQ(session.loss_scale().scale, 2 * scale);
  }
}

TEST(LossScale, IsNotToBlameForALossThatStaysInfinite) {
  Session session = half_session(2000, 4);
  std::vector<double> weights = session.read_state("conv1.weight");
  weights[0] = std::numeric_limits<double>::quiet_NaN();
  session.write_state("conv1.weight", weights);
  for (const double scale : {2.0, 1.0}) {
    EXPECT_TRUE(step(session).overflowed);
    EXPECT_EQ(session.loss_scale().scale, scale);
  }
  const Result result = step(session);
  EXPECT_TRUE(result.skipped);
  EXPECT_FALSE(result.overflowed);
  EXPECT_EQ(session.loss_scale().skipped_steps, 2U);
}

TEST(LossScale, ComesBackWithASnapshot) {
  const TemporaryFolder folder;
  Session first = half_session(100, 0x1p24);
  for (int i = 0; i < 12; ++i) step(first);
  EXPECT_GT(first.loss_scale().skipped_steps, 0U);
  EXPECT_GT(first.loss_scale().good_steps, 0U);
  save_snapshot(folder.path() / "half.safetensors", first, {});
  Session second = half_session(100);
  load_snapshot(folder.path() / "half.safetensors", second);
  EXPECT_EQ(second.loss_scale(), first.loss_scale());
  EXPECT_EQ(step(second).loss, step(first).loss);
  EXPECT_EQ(all_bytes(second), all_bytes(first));
}

TEST(LossScale, CannotFollowWhatIsNotMeasured) {
  Session session = small_session();
  EXPECT_THROW(session.follow_gradients(), UserError);
  EXPECT_THROW(half_session(0), UserError);
}

}  // namespace
}  // namespace snug::train
