// AdamW's moments in 16 bits under a scale per tensor, or in 8 under a scale per block: close to those in floats, and as exact as
// any run when it is resumed.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/philox.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/session.h"
#include "train/snapshot.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSize = 16;

CompileOptions adamw(DType dtype, std::int64_t moment_bits = 0, bool stochastic = true) {
  return {.batch = kBatch,
          .methods = {.precision = dtype},
          .update = {.rule = "adamw", .settings = {{"moment_bits", moment_bits}}, .stochastic_rounding = stochastic}};
}

train::Session session_of(const Backend& backend, const CompileOptions& options, const std::string& model = "wrn-10-1") {
  train::Session session(compile(frontend::build_zoo_model(model, {.batch = kBatch, .image_size = kSize}), backend, options),
                         backend, 5);
  session.set_learning_rate(2e-3);
  if (options.update.clip_norm > 0) session.set_clip_norm(options.update.clip_norm);
  return session;
}

train::Result step(train::Session& session, std::int32_t first_label = 0) {
  std::vector<std::byte> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kBatch * kSize * kSize * 3; ++i)
    images.push_back(static_cast<std::byte>(philox(3, static_cast<std::uint64_t>(i), session.step() % 2).word[0]));
  for (std::int64_t i = 0; i < kBatch; ++i) labels.push_back(static_cast<std::int32_t>(i));
  labels.front() = first_label;
  return session.train_step(support::Labeled(images, labels));
}

std::vector<std::byte> kept_bytes(const train::Session& session) {
  return support::state_bytes(session, [](Role role) { return role == Role::parameter || role == Role::optimizer; });
}

Bytes optimizer_bytes(const train::Session& session) {
  Bytes sum;
  for (const State& state : session.plan().program.states) {
    if (state.role == Role::optimizer) sum += state.type.bytes();
  }
  return sum;
}

void expect_losses_of_floats(std::int64_t bits, double largest_share) {
  const Backend backend = backends::cpu_backend(2);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool stochastic : {true, false}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (stochastic ? " by chance" : " to nearest"));
      train::Session plain = session_of(backend, adamw(dtype, 32, stochastic));
      train::Session narrow = session_of(backend, adamw(dtype, bits, stochastic));
      const double share =
          static_cast<double>(optimizer_bytes(narrow).count()) / static_cast<double>(optimizer_bytes(plain).count());
      EXPECT_LT(share, largest_share);
      EXPECT_LT(narrow.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
      narrow.executor().start_measuring();
      for (int i = 0; i < 8; ++i) {
        const double expected = step(plain).loss, loss = step(narrow).loss;
        EXPECT_TRUE(i > 0 || loss == expected);
        EXPECT_NEAR(loss, expected, 0.03 + 0.05 * expected) << i;
      }
      EXPECT_EQ(narrow.executor().measured_peak_bytes(), narrow.plan().planned_peak_bytes);
    }
  }
}

TEST(AdamwMoments, OfSixteenBitsTrainLikeThoseOfThirtyTwoInHalfTheBytes) {
  expect_losses_of_floats(16, 0.6);  // normalization keeps floats
}

TEST(AdamwMoments, OfEightBitsTrainLikeThoseOfThirtyTwoInAQuarterOfTheBytes) {
  expect_losses_of_floats(8, 0.35);  // small parameters keep floats
}

TEST(AdamwMoments, AreOfSixteenBitsWhereWeightsAre) {
  const Backend backend = backends::cpu_backend(1);
  const auto stored = [&](DType dtype, const std::string& name) {
    const Plan plan = compile(frontend::build_zoo_model("small-cnn", {.batch = kBatch}), backend, adamw(dtype));
    return plan.program.state(plan.program.find_state(name)).type.dtype;
  };
  EXPECT_EQ(stored(DType::f32, "conv2.weight.second_moment"), DType::f32);
  EXPECT_EQ(stored(DType::bf16, "conv2.weight.second_moment"), DType::f16);
  EXPECT_EQ(stored(DType::f16, "conv2.weight.first_moment"), DType::f16);
  EXPECT_EQ(stored(DType::f16, "bn2.weight.first_moment"), DType::f32);
}

TEST(AdamwMoments, AResumedRunHasTheBitsOfOneThatWasNeverStopped) {
  const Backend backend = backends::cpu_backend(2);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t bits : {8, 16, 32}) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(dtype), bits));
      const support::TemporaryFolder folder;
      train::Session whole = session_of(backend, adamw(dtype, bits));
      for (int i = 0; i < 3; ++i) step(whole);
      train::save_snapshot(folder / "snapshot", whole, {});
      for (int i = 0; i < 2; ++i) step(whole);
      train::Session resumed(io::parse_plan(train::inspect_snapshot(folder / "snapshot").plan), backend, 99);
      train::load_snapshot(folder / "snapshot", resumed);
      EXPECT_EQ(resumed.read_state("updates"), (std::vector<double>{3}));
      for (int i = 0; i < 2; ++i) step(resumed);
      EXPECT_TRUE(kept_bytes(resumed) == kept_bytes(whole));
      EXPECT_EQ(resumed.read_state("updates"), (std::vector<double>{5}));
    }
  }
}

TEST(AdamwMoments, AnyNumberOfThreadsAndTheUpdateInBackwardGiveTheSameBits) {
  const Backend one = backends::reference_backend(1), three = backends::reference_backend(3);
  for (const std::int64_t bits : {8, 16}) {
    CompileOptions fused = adamw(DType::f32, bits);
    fused.methods.fuse_update = true;
    train::Session a = session_of(one, adamw(DType::f32, bits)), b = session_of(three, adamw(DType::f32, bits)),
                   c = session_of(one, fused);
    EXPECT_LT(c.plan().planned_peak_bytes, a.plan().planned_peak_bytes);
    for (int i = 0; i < 3; ++i) {
      for (train::Session* session : {&a, &b, &c}) step(*session);
    }
    EXPECT_TRUE(kept_bytes(a) == kept_bytes(b)) << bits;
    EXPECT_TRUE(kept_bytes(a) == kept_bytes(c)) << bits;
  }
}

TEST(AdamwMoments, AStepThatIsNotFiniteLeavesMomentsScalesAndCountAsTheyWere) {
  for (const std::int64_t bits : {8, 16}) {
    for (const double clip_norm : {0.0, 0.5}) {
      CompileOptions options = adamw(DType::bf16, bits);
      options.update.clip_norm = clip_norm;
      train::Session session = session_of(backends::cpu_backend(2), options);
      for (int i = 0; i < 2; ++i) step(session);
      const std::vector<std::byte> before = kept_bytes(session);
      EXPECT_TRUE(step(session, 99).skipped);  // no such class
      EXPECT_TRUE(kept_bytes(session) == before);
      EXPECT_FALSE(step(session).skipped);
      EXPECT_EQ(session.read_state("updates"), (std::vector<double>{3}));
      EXPECT_FALSE(kept_bytes(session) == before);
    }
  }
}

// A loss scale that no half can hold: the first gradients overflow until it has come down to where they fit.
TEST(AdamwMoments, AnOverflowLeavesNoTraceAndDoesNotCount) {
  CompileOptions options = adamw(DType::f16, 0, false);
  options.update.finds_overflow = true;
  train::Session session = session_of(backends::cpu_backend(2), options);
  session.set_loss_scale(0x1p32);
  session.follow_gradients(1000);
  const std::vector<std::byte> before = kept_bytes(session);
  int skipped = 0;
  for (; skipped < 40 && step(session).overflowed; ++skipped) EXPECT_TRUE(kept_bytes(session) == before);
  EXPECT_GT(skipped, 3);
  EXPECT_LT(skipped, 40);
  EXPECT_EQ(session.read_state("updates"), (std::vector<double>{1}));
  EXPECT_FALSE(kept_bytes(session) == before);
}

// The first steps after a rewiring are as long as a run's first: the bias is corrected by a count that was reset with the
// moments.
TEST(AdamwMoments, OfSparseWeightsAreClearedWithTheirCountWhenThePatternMoves) {
  const Backend backend = backends::cpu_backend(2);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    CompileOptions options = adamw(dtype);
    options.methods.nonzero = 0.4;
    options.sparse = {.rewire_fraction = 0.05, .threshold = 0.02};
    train::Session session = session_of(backend, options);
    for (int i = 0; i < 4; ++i) step(session);
    const auto norm = [&](const std::string& name) {
      double squares = 0;
      for (const double value : session.read_state(name)) squares += value * value;
      return std::sqrt(squares);
    };
    const std::vector<std::string> moments{"sparse.weight.first_moment", "sparse.weight.second_moment"};
    for (const std::string& name : moments) EXPECT_GT(norm(name), 0) << name;
    EXPECT_EQ(norm("sparse.weight.updates"), 4);
    session.run_periodic();
    for (const std::string& name : moments) EXPECT_EQ(norm(name), 0) << name;
    EXPECT_EQ(norm("sparse.weight.updates"), 0);
    EXPECT_EQ(norm("updates"), 4);
    EXPECT_TRUE(std::isfinite(step(session).loss));
    for (const std::string& name : moments) EXPECT_GT(norm(name), 0) << name;
    EXPECT_EQ(norm("sparse.weight.updates"), 1);
    EXPECT_EQ(norm("updates"), 5);
  }
}

// Codes need no clearing: a scale of 0 makes all of them 0.
TEST(AdamwMoments, OfEightBitsOfSparseWeightsAreClearedByTheirScalesWhenThePatternMoves) {
  CompileOptions options = adamw(DType::bf16, 8);
  options.methods.nonzero = 0.4;
  options.sparse = {.rewire_fraction = 0.05, .threshold = 0.02};
  train::Session session = session_of(backends::cpu_backend(2), options);
  for (int i = 0; i < 4; ++i) step(session);
  const auto scales = [&] { return session.read_state("sparse.weight.moment_scales"); };
  EXPECT_GT(scales()[0], 0);
  EXPECT_GT(scales()[1], 0);
  session.run_periodic();
  for (const double scale : scales()) EXPECT_EQ(scale, 0);
  EXPECT_EQ(session.read_state("sparse.weight.updates"), (std::vector<double>{0}));
  EXPECT_TRUE(std::isfinite(step(session).loss));
  EXPECT_GT(scales()[0], 0);
}

TEST(AdamwMoments, FrozenParametersHaveNone) {
  Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = kBatch, .image_size = kSize});
  for (State& state : graph.states) state.trainable = state.trainable && !state.name.starts_with("group3");
  const Plan plan = compile(graph, backends::cpu_backend(1), adamw(DType::bf16));
  for (const State& state : plan.program.states) {
    EXPECT_FALSE(state.role == Role::optimizer && state.name.starts_with("group3")) << state.name;
  }
}

}  // namespace

}  // namespace snug
