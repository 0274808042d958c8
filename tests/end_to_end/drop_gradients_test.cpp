// Gradients added to the momentum at once: the same training but for the order of sums, and no bytes for gradients.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "base/philox.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/messages.h"
#include "train/session.h"
#include <snug/error.h>

namespace snug {

namespace {

constexpr std::int64_t kBatch = 7;
constexpr std::int64_t kSize = 16;

train::Session session_of(const std::string& model, bool drops, const std::string& strategy = "none", DType dtype = DType::f32,
                          double nonzero = 1) {
  const Backend backend = backends::cpu_backend(2);
  CompileOptions options{
      .batch = kBatch,
      .methods = {.precision = dtype, .nonzero = nonzero, .checkpoint = parse_checkpoint_strategy(strategy)},
      .update = {.settings = ops::sgd_settings({.nesterov = false}), .stochastic_rounding = dtype == DType::bf16}};
  if (drops) options.methods.drop_gradients = true;
  // Three microbatches, the last one short.
  train::Session session(compile(frontend::build_zoo_model(model, {.batch = 3, .image_size = kSize}), backend, options), backend,
                         5);
  session.set_learning_rate(0.02);
  return session;
}

train::Result step(train::Session& session, std::int32_t first_label = 0) {
  std::vector<std::byte> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kBatch * kSize * kSize * 3; ++i)
    images.push_back(static_cast<std::byte>(philox(3, static_cast<std::uint64_t>(i), session.step()).word[0]));
  for (std::int64_t i = 0; i < kBatch; ++i) labels.push_back(static_cast<std::int32_t>(i));
  labels.front() = first_label;
  return session.train_step(support::Labeled(images, labels));
}

// The largest distance of two weights, beside the largest weight.
double difference(const train::Session& a, const train::Session& b) {
  double worst = 0;
  for (const State& state : a.plan().program.states) {
    if (state.role != Role::parameter) continue;
    const std::vector<double> x = a.read_state(state.name), y = b.read_state(state.name);
    double largest = 1e-3;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]) / largest);
  }
  return worst;
}

TEST(DroppedGradients, TrainLikePlainHeavyBallInFewerBytes) {
  for (const auto& [model, strategy] : {std::pair<std::string, std::string>{"small-cnn", "none"}, {"wrn-10-1", "sqrt"}}) {
    train::Session plain = session_of(model, false, strategy), dropped = session_of(model, true, strategy);
    Bytes gradients;
    for (const State& state : plain.plan().program.states) {
      if (state.role == Role::gradient) gradients += state.type.bytes();
    }
    for (const State& state : dropped.plan().program.states) EXPECT_NE(state.role, Role::gradient) << state.name;
    EXPECT_GE(plain.plan().persistent_bytes - dropped.plan().persistent_bytes, gradients);
    EXPECT_LT(dropped.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
    dropped.executor().start_measuring();
    for (int i = 0; i < 4; ++i) {
      const double expected = step(plain).loss;
      EXPECT_NEAR(step(dropped).loss, expected, 1e-3 * expected) << model << " " << i;
    }
    EXPECT_LT(difference(plain, dropped), 2e-3) << model;
    EXPECT_EQ(dropped.executor().measured_peak_bytes(), dropped.plan().planned_peak_bytes);
  }
}

TEST(DroppedGradients, GoWithBfloatAndWithSparseWeights) {
  for (const auto& [dtype, nonzero] : {std::pair{DType::bf16, 1.0}, {DType::f32, 0.4}, {DType::bf16, 0.4}}) {
    SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(nonzero));
    train::Session plain = session_of("wrn-10-1", false, "none", dtype, nonzero);
    train::Session dropped = session_of("wrn-10-1", true, "none", dtype, nonzero);
    EXPECT_LT(dropped.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
    dropped.executor().start_measuring();
    for (int i = 0; i < 4; ++i) {
      const double expected = step(plain).loss;
      EXPECT_NEAR(step(dropped).loss, expected, (dtype == DType::f32 ? 1e-3 : 5e-2) * expected) << i;
      if (i == 1 && nonzero < 1) {
        plain.run_periodic();
        dropped.run_periodic();
      }
    }
    EXPECT_EQ(dropped.executor().measured_peak_bytes(), dropped.plan().planned_peak_bytes);
  }
}

// The same gradient in all of 100 microbatches and in all steps: the momentum grows to ten steps' gradients, so that what a
// microbatch adds comes to less than a bfloat16's last bit. Every parameter must have moved as far as in fp32.
TEST(DroppedGradients, OfManyMicrobatchesAreNotSwallowedByBfloats) {
  constexpr std::int64_t kMany = 100, kSmall = 8;
  const Backend backend = backends::cpu_backend(1);
  const auto session_in = [&](DType dtype) {
    CompileOptions options{.batch = kMany,
                           .methods = {.precision = dtype},
                           .update = {.settings = ops::sgd_settings({.weight_decay = 0, .nesterov = false})}};
    options.update.stochastic_rounding = dtype == DType::bf16;
    options.methods.drop_gradients = true;
    train::Session session(compile(frontend::build_zoo_model("small-cnn", {.batch = 1, .image_size = kSmall}), backend, options),
                           backend, 5);
    session.set_learning_rate(0.002);
    return session;
  };
  train::Session exact = session_in(DType::f32), rounded = session_in(DType::bf16);
  std::vector<std::vector<double>> before;
  for (const State& state : exact.plan().program.states) {
    if (state.role != Role::parameter) continue;
    rounded.write_state(state.name, exact.read_state(state.name));
    before.push_back(rounded.read_state(state.name));
    exact.write_state(state.name, before.back());
  }
  std::vector<std::byte> images;
  for (std::int64_t i = 0; i < kMany * kSmall * kSmall * 3; ++i)
    images.push_back(static_cast<std::byte>(philox(3, static_cast<std::uint64_t>(i % (kSmall * kSmall * 3)), 0).word[0]));
  for (int i = 0; i < 12; ++i) {
    for (train::Session* session : {&exact, &rounded})
      session->train_step(support::Labeled(images, std::vector<std::int32_t>(kMany, 3)));
  }
  std::size_t k = 0;
  for (const State& state : exact.plan().program.states) {
    if (state.role != Role::parameter) continue;
    const std::vector<double> x = exact.read_state(state.name), y = rounded.read_state(state.name), &from = before[k++];
    double along = 0, length = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      along += (y[i] - from[i]) * (x[i] - from[i]);
      length += (x[i] - from[i]) * (x[i] - from[i]);
    }
    EXPECT_NEAR(along / length, 1, 0.15) << state.name;
  }
}

TEST(DroppedGradients, DynamicLossScalingIsRefused) {
  const Backend backend = backends::cpu_backend(1);
  CompileOptions options{.methods = {.precision = DType::f16, .drop_gradients = true},
                         .update = {.settings = ops::sgd_settings({.nesterov = false}), .finds_overflow = true}};
  try {
    compile(frontend::build_zoo_model("small-cnn", {.batch = 3}), backend, options);
    ADD_FAILURE() << "it was taken";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(error.what(), {"'drop_gradients'", "dynamic", "fp32", "bf16"}));
  }
}

TEST(DroppedGradients, ALossThatIsNotFiniteLeavesTheWeightsAsTheyWere) {
  train::Session session = session_of("small-cnn", true);
  step(session);
  const std::vector<double> before = session.read_state("conv2.weight");
  EXPECT_TRUE(step(session, 99).skipped);  // no such class
  EXPECT_EQ(session.read_state("conv2.weight"), before);
}

TEST(DroppedGradients, ALossScaleIsRefused) {
  train::Session session = session_of("small-cnn", true);
  session.set_loss_scale(1);
  try {
    session.set_loss_scale(1024);
    ADD_FAILURE() << "it was taken";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(error.what(), {"1024", "drop_gradients", "under"}));
  }
}

}  // namespace

}  // namespace snug
