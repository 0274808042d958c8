// Momentum in 8 bits: close to the plain one, a quarter of its bytes, and as exact as any run when it is resumed.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/philox.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/messages.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/session.h"
#include "train/snapshot.h"
#include <snug/error.h>

namespace snug {

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSize = 16;

train::Session session_of(const Backend& backend, const CompileOptions& options, const std::string& model = "wrn-10-1",
                          DType dtype = DType::f32) {
  CompileOptions full = options;
  full.batch = kBatch;
  full.methods.precision = dtype;
  train::Session session(compile(frontend::build_zoo_model(model, {.batch = kBatch, .image_size = kSize}), backend, full),
                         backend, 5);
  session.set_learning_rate(0.05);
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

Bytes optimizer_bytes(const Plan& plan) {
  Bytes sum;
  for (const State& state : plan.program.states) {
    if (state.role == Role::optimizer) sum += state.type.bytes();
  }
  return sum;
}

const CompileOptions kEight{.update = {.settings = ops::sgd_settings({.momentum_bits = 8})}};

TEST(MomentumBits, TrainsLikeThePlainOneInAQuarterOfItsBytes) {
  for (const Backend& backend : {backends::cpu_backend(2), backends::reference_backend(2)}) {
    train::Session plain = session_of(backend, {}), quantized = session_of(backend, kEight);
    const double share = static_cast<double>(optimizer_bytes(quantized.plan()).count()) /
                         static_cast<double>(optimizer_bytes(plain.plan()).count());
    EXPECT_LT(share, 0.35);  // small parameters keep theirs
    EXPECT_LT(quantized.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
    EXPECT_TRUE(quantized.plan().program.find_state("stem.conv.weight.momentum").valid()) << "432 elements";
    quantized.executor().start_measuring();
    for (int i = 0; i < 6; ++i) {
      const double expected = step(plain).loss, loss = step(quantized).loss;
      EXPECT_TRUE(i > 0 || loss == expected);
      EXPECT_NEAR(loss, expected, 0.02 + 0.05 * expected) << i;
    }
    EXPECT_EQ(quantized.executor().measured_peak_bytes(), quantized.plan().planned_peak_bytes);
  }
}

TEST(MomentumBits, GoesWithWeightsOf16BitsHoweverTheyAreRounded) {
  const Backend backend = backends::cpu_backend(2);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const bool stochastic : {true, false}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (stochastic ? " by chance" : " to nearest"));
      CompileOptions plain_options{.update = {.stochastic_rounding = stochastic}};
      CompileOptions options = plain_options;
      options.update.settings.set("momentum_bits", std::int64_t{8});
      train::Session plain = session_of(backend, plain_options, "wrn-10-1", dtype);
      train::Session quantized = session_of(backend, options, "wrn-10-1", dtype);
      train::Session again = session_of(backend, options, "wrn-10-1", dtype);
      EXPECT_LT(quantized.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
      quantized.executor().start_measuring();
      for (int i = 0; i < 6; ++i) {
        const double expected = step(plain).loss, loss = step(quantized).loss;
        EXPECT_NEAR(loss, expected, 0.05 + 0.1 * expected) << i;
        step(again);
      }
      EXPECT_EQ(quantized.executor().measured_peak_bytes(), quantized.plan().planned_peak_bytes);
      EXPECT_TRUE(kept_bytes(quantized) == kept_bytes(again));
    }
  }
}

// A weight of one and updates far below the distance of its neighbors: by chance they add up to what they should, to nearest
// to nothing.
TEST(MomentumBits, SmallUpdatesOf16BitsSurviveWhenRoundedStochastically) {
  const Backend backend = backends::cpu_backend(2);
  const auto moved = [&](bool stochastic) {
    const CompileOptions options{
        .update = {.settings = ops::sgd_settings({.momentum = 0.5, .weight_decay = 1, .nesterov = false, .momentum_bits = 8}),
                   .stochastic_rounding = stochastic}};
    train::Session session = session_of(backend, options, "wrn-10-1", DType::bf16);
    session.set_learning_rate(5e-5);  // of weights of 1 that decay: 1e-4 a step once the momentum has built up
    const std::string name = "group3.block1.conv2.weight";
    const auto state = session.plan().program.find_state(name);
    session.write_state(name,
                        std::vector<double>(static_cast<std::size_t>(session.plan().program.state(state).type.elements()), 1.0));
    for (int i = 0; i < 10; ++i) step(session);
    double sum = 0;
    const std::vector<double> values = session.read_state(name);
    for (const double value : values) sum += 1 - value;
    return sum / static_cast<double>(values.size());
  };
  EXPECT_EQ(moved(false), 0);
  EXPECT_NEAR(moved(true), 8e-4, 4e-4);  // what the loss itself asks for is there too
}

TEST(MomentumBits, OfSparseWeightsIsClearedWhenThePatternMoves) {
  const Backend backend = backends::cpu_backend(2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    CompileOptions plain_options{.methods = {.nonzero = 0.4}, .sparse = {.rewire_fraction = 0.05, .threshold = 0.02}};
    CompileOptions options = plain_options;
    options.update.settings.set("momentum_bits", std::int64_t{8});
    train::Session plain = session_of(backend, plain_options, "wrn-10-1", dtype);
    train::Session session = session_of(backend, options, "wrn-10-1", dtype);
    EXPECT_LT(optimizer_bytes(session.plan()), optimizer_bytes(plain.plan()));
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(step(session).loss, step(plain).loss, 0.2) << i;
    const auto scales = [&] { return session.read_state("sparse.weight.momentum.scales"); };
    EXPECT_GT(scales()[0], 0);
    session.run_periodic();
    for (const double scale : scales()) EXPECT_EQ(scale, 0);
    plain.run_periodic();
    EXPECT_NEAR(step(session).loss, step(plain).loss, 0.2);
    EXPECT_GT(scales()[0], 0);
  }
}

TEST(MomentumBits, AnyNumberOfThreadsAndTheUpdateInBackwardGiveTheSameBits) {
  // By the reference: on the CPU what comes before the update may depend on the number of threads. The CPU's update alone is
  // tested in tests/backends/cpu/same_bits_test.cpp.
  const Backend one = backends::reference_backend(1), three = backends::reference_backend(3);
  train::Session a = session_of(one, kEight, "small-cnn"), b = session_of(three, kEight, "small-cnn");
  CompileOptions fused = kEight;
  fused.methods.fuse_update = true;
  train::Session c = session_of(one, fused, "small-cnn");
  for (int i = 0; i < 3; ++i) {
    for (train::Session* session : {&a, &b, &c}) step(*session);
  }
  EXPECT_TRUE(kept_bytes(a) == kept_bytes(b));
  EXPECT_TRUE(kept_bytes(a) == kept_bytes(c));
}

TEST(MomentumBits, AStepThatIsNotFiniteLeavesCodesAndScalesAsTheyWere) {
  for (const double clip_norm : {0.0, 0.5}) {
    CompileOptions options = kEight;
    options.update.clip_norm = clip_norm;
    train::Session session = session_of(backends::cpu_backend(2), options);
    for (int i = 0; i < 2; ++i) step(session);
    const std::vector<std::byte> before = kept_bytes(session);
    EXPECT_TRUE(step(session, 99).skipped);  // no such class
    EXPECT_TRUE(kept_bytes(session) == before);
    EXPECT_FALSE(step(session).skipped);
    EXPECT_FALSE(kept_bytes(session) == before);
  }
}

TEST(MomentumBits, AResumedRunHasTheBitsOfOneThatWasNeverStopped) {
  const support::TemporaryFolder folder;
  const Backend backend = backends::cpu_backend(2);
  train::Session whole = session_of(backend, kEight);
  for (int i = 0; i < 3; ++i) step(whole);
  train::save_snapshot(folder / "snapshot", whole, {});
  for (int i = 0; i < 2; ++i) step(whole);
  train::Session resumed(io::parse_plan(train::inspect_snapshot(folder / "snapshot").plan), backend, 99);
  train::load_snapshot(folder / "snapshot", resumed);
  for (int i = 0; i < 2; ++i) step(resumed);
  EXPECT_TRUE(kept_bytes(resumed) == kept_bytes(whole));
  // Another order of the weights' elements would be another momentum.
  train::Session other = session_of(backends::reference_backend(1), kEight);
  EXPECT_THROW(train::load_snapshot(folder / "snapshot", other), UserError);
}

TEST(MomentumBits, FrozenParametersHaveNone) {
  const Backend backend = backends::cpu_backend(1);
  Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = kBatch, .image_size = kSize});
  for (State& state : graph.states) state.trainable = state.trainable && !state.name.starts_with("group3");
  const Plan plan = compile(graph, backend, kEight);
  for (const State& state : plan.program.states) {
    EXPECT_FALSE(state.role == Role::optimizer && state.name.starts_with("group3")) << state.name;
  }
}

TEST(MomentumBits, WhatIsNotPossibleIsRefused) {
  const Backend backend = backends::cpu_backend(1);
  const auto refusal = [&](const ops::SgdSettings& settings) {
    try {
      compile(frontend::build_zoo_model("small-cnn", {.batch = kBatch}), backend,
              {.update = {.settings = ops::sgd_settings(settings)}});
      return std::string("it was taken");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_TRUE(support::mentions(refusal({.momentum_bits = 4}), {"4", "8", "32", "plain"}));
  EXPECT_TRUE(
      support::mentions(refusal({.momentum = 0, .nesterov = false, .momentum_bits = 8}), {"8", "0", "set", "--momentum-bits"}));
}

}  // namespace

}  // namespace snug
