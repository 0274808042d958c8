// Clipping by the gradients' norm: against PyTorch, and against the gradients themselves.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "end_to_end/golden.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/messages.h"

namespace snug {

namespace {

double length(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// Losses, norms and weights of eight steps, of which some are clipped and some are not.
template <typename T>
void expect_pytorchs_steps(const std::string& run, DType dtype, const Backend& backend, double tolerance) {
  const Json figures = golden("wrn_10_1_clipped.json");
  const Json& setting = figures["setting"];
  const Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = setting["batch"], .staged_as_bytes = false});
  train::Session session(
      compile(graph, backend, {.methods = {.precision = dtype}, .update = {.clip_norm = setting["clip_norm"]}}), backend, 0);
  session.set_learning_rate(setting["lr"]);
  session.set_clip_norm(setting["clip_norm"]);
  write_weights(session, figures["parameters"]);
  for (std::uint64_t step = 0; step < setting["steps"]; ++step) {
    const double loss = figures[run]["losses"][step];
    const double norm = figures[run]["norms"][step];
    EXPECT_NEAR(train_step<T>(session, step), loss, tolerance * loss) << "step " << step + 1;
    EXPECT_NEAR(session.gradient_norm(), norm, tolerance * norm) << "step " << step + 1;
  }
  for (const auto& [name, figure] : figures[run]["final_l2"].items()) {
    const double l2 = figure;
    EXPECT_NEAR(length(session.read_state(name)), l2, tolerance * std::max(0.01, l2)) << name;
  }
}

TEST(GoldenClipping, ReferenceFollowsPyTorchInDoublePrecision) {
  expect_pytorchs_steps<double>("fp64", DType::f64, backends::reference_backend(2), 1e-11);
}

TEST(GoldenClipping, ReferenceFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps<float>("fp32", DType::f32, backends::reference_backend(2), 1e-5);
}

TEST(GoldenClipping, CpuBackendFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps<float>("fp32", DType::f32, backends::cpu_backend(2), 1e-5);
}

// Channels that fill no block of any of oneDNN's layouts.
Program odd_channels() {
  frontend::GraphBuilder b("odd", 4);
  ValueId x = b.features({3, 9, 9}, Layout::channels_last());
  x = b.relu("r1", b.conv2d("a", x, {.out_channels = 10, .padding = 1, .bias = true}));
  x = b.relu("r2", b.conv2d("b", x, {.out_channels = 21, .padding = 1}));
  b.softmax_cross_entropy(b.linear("head", b.global_avg_pool("pool", x), 7));
  return std::move(b).finish();
}

struct Batch {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;

  explicit Batch(std::size_t examples) : inputs(examples * 3 * 9 * 9), labels(examples) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(2 * uniform(7, i) - 1);
    for (std::size_t i = 0; i < examples; ++i) labels[i] = static_cast<std::int32_t>(i % 7);
  }
  support::Labeled examples() const { return {std::as_bytes(std::span(inputs)), labels, "features"}; }
};

train::Session odd_session(const Backend& backend, double clip_norm) {
  train::Session session(compile(odd_channels(), backend, {.update = {.clip_norm = clip_norm}}), backend, 5);
  if (clip_norm > 0) session.set_clip_norm(clip_norm);
  return session;
}

TEST(Clipping, PaddingOfALayoutDoesNotCount) {
  const Backend backend = backends::cpu_backend(2);
  train::Session session = odd_session(backend, 0.25);
  const Program& program = session.plan().program;
  bool padded = false;
  for (const State& state : program.states)
    padded = padded || (state.role == Role::gradient && state.type.bytes().count() > state.type.elements() * 4);
  EXPECT_TRUE(padded);

  const Batch batch(4);
  for (int step = 0; step < 3; ++step) {
    // The same step by hand: gradients can be read between the two sections.
    Executor& executor = session.executor();
    executor.write(program.find_state("features"), std::as_bytes(std::span(batch.inputs)));
    executor.write(program.find_state("labels"), std::as_bytes(std::span(batch.labels)));
    executor.write_scalars(
        {.valid_examples = 4, .batch_examples = 4, .total_weight = 4, .learning_rate = 0.1, .loss_scale = 8, .clip_norm = 0.25});
    executor.run(SectionKind::micro);
    double squares = 0;
    for (const State& state : program.states) {
      if (state.role == Role::gradient) squares += std::pow(length(session.read_state(state.name)), 2);
    }
    executor.run(SectionKind::update);
    const double norm = std::sqrt(squares) / 8;
    EXPECT_GT(norm, 0.25);
    EXPECT_NEAR(session.gradient_norm(), norm, 1e-13 * norm);
  }
}

// The first step of plain SGD moves the weights by learning rate times gradient: never further than the clip norm allows.
TEST(Clipping, AStepIsAsLongAsItMayBe) {
  const Backend backend = backends::cpu_backend(1);
  const Batch batch(4);
  const auto distance = [&](double clip_norm) {
    train::Session session(
        compile(odd_channels(), backend,
                {.update = {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false}),
                            .clip_norm = clip_norm}}),
        backend, 5);
    session.set_clip_norm(clip_norm);
    session.set_learning_rate(0.5);
    std::vector<double> before, after;
    const auto gather = [&](std::vector<double>& all) {
      for (const State& state : session.plan().program.states) {
        if (state.role != Role::parameter) continue;
        const std::vector<double> values = session.read_state(state.name);
        all.insert(all.end(), values.begin(), values.end());
      }
    };
    gather(before);
    session.train_step(batch.examples());
    gather(after);
    for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
    return std::pair(length(after), session.gradient_norm());
  };
  const auto [clipped, norm] = distance(0.125);
  EXPECT_NEAR(clipped, 0.5 * 0.125, 1e-5 * 0.5);
  EXPECT_GT(norm, 0.125);
  EXPECT_NEAR(distance(std::numeric_limits<double>::infinity()).first, 0.5 * norm, 1e-5 * norm);
}

TEST(Clipping, ALargeEnoughNormChangesNothing) {
  const Batch batch(4);
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)}) {
    train::Session plain = odd_session(backend, 0), measured = odd_session(backend, 1e6);
    for (int step = 0; step < 3; ++step)
      EXPECT_EQ(plain.train_step(batch.examples()).loss, measured.train_step(batch.examples()).loss);
    EXPECT_EQ(plain.read_state("a.weight"), measured.read_state("a.weight"));
  }
}

TEST(Clipping, CheckingModeGivesTheSameBits) {
  const Backend backend = backends::cpu_backend(2);
  const Batch batch(4);
  train::Session plain = odd_session(backend, 0.25);
  train::Session checked(compile(odd_channels(), backend, {.update = {.clip_norm = 0.25}, .red_zone = Bytes(128)}), backend, 5);
  checked.set_clip_norm(0.25);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(plain.train_step(batch.examples()).loss, checked.train_step(batch.examples()).loss);
    EXPECT_EQ(plain.gradient_norm(), checked.gradient_norm());
  }
  EXPECT_EQ(plain.read_state("b.weight"), checked.read_state("b.weight"));
}

TEST(Clipping, MistakesAreNamed) {
  const Backend backend = backends::cpu_backend(1);
  const Batch batch(4);
  train::Session plain = odd_session(backend, 0);
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { plain.set_clip_norm(1); }),
                                {"program", "'odd'", "gradients", "compile", "clip_norm", "0"}));
  EXPECT_TRUE(
      support::mentions(support::message_of<UserError>([&] { plain.gradient_norm(); }), {"'odd'", "measure", "clip_norm", "0"}));
  train::Session unset(compile(odd_channels(), backend, {.update = {.clip_norm = 1}}), backend, 5);
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { unset.train_step(batch.examples()); }), {"'odd'", "clips"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { unset.set_clip_norm(0); }), {"gradients", "clipped", "0"}));
  EXPECT_TRUE(support::mentions(support::message_of<UserError>([&] { odd_session(backend, -1); }), {"clipped", "-1", "0"}));
}

// A step whose loss or gradients are not finite.
class NonFinite : public testing::TestWithParam<double> {
 protected:
  using States = std::vector<std::vector<double>>;

  static States states_of(const train::Session& session, const std::vector<Role>& roles) {
    States all;
    for (const State& state : session.plan().program.states) {
      for (const Role role : roles) {
        if (state.role == role) all.push_back(session.read_state(state.name));
      }
    }
    return all;
  }
  static void expect_cleared(const train::Session& session) {
    for (const State& state : session.plan().program.states) {
      if (state.role != Role::gradient) continue;
      for (const double value : session.read_state(state.name)) ASSERT_EQ(value, 0) << state.name;
    }
  }
};

TEST_P(NonFinite, LossLeavesWeightsAndMomentumAsTheyWereAndClearsTheGradients) {
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)}) {
    train::Session session(compile(odd_channels(), backend, {.batch = 8, .update = {.clip_norm = GetParam()}}), backend, 5);
    if (GetParam() > 0) session.set_clip_norm(GetParam());
    const Batch good(8);
    Batch bad = good;
    bad.inputs[5] = std::numeric_limits<float>::quiet_NaN();  // in the first of two microbatches
    EXPECT_FALSE(session.train_step(good.examples()).skipped);
    const States before = states_of(session, {Role::parameter, Role::optimizer});

    const train::Result result = session.train_step(bad.examples());
    EXPECT_TRUE(result.skipped);
    EXPECT_TRUE(std::isnan(result.loss));
    EXPECT_EQ(states_of(session, {Role::parameter, Role::optimizer}), before);
    expect_cleared(session);
    EXPECT_EQ(session.step(), 2U);

    const train::Result next = session.train_step(good.examples());
    EXPECT_FALSE(next.skipped);
    EXPECT_TRUE(std::isfinite(next.loss));
    EXPECT_NE(states_of(session, {Role::parameter, Role::optimizer}), before);
  }
}

// 0: the program does not clip.
INSTANTIATE_TEST_SUITE_P(EachWay, NonFinite, testing::Values(0.0, 0.25));

// An overflow that the loss does not show: the host learns of it when the update has run, so the update itself must skip.
TEST_F(NonFinite, GradientsWithAFiniteLossAreSkippedWhereTheirNormIsMeasured) {
  const Batch batch(4);
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)}) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      train::Session session = odd_session(backend, 0.25);
      session.train_step(batch.examples());
      const States before = states_of(session, {Role::parameter, Role::optimizer});
      session.write_state("a.bias.grad", std::vector<double>(10, value));
      const train::Result result = session.train_step(batch.examples());
      EXPECT_FALSE(result.skipped);
      EXPECT_TRUE(std::isfinite(result.loss));
      EXPECT_FALSE(std::isfinite(session.gradient_norm()));
      EXPECT_EQ(states_of(session, {Role::parameter, Role::optimizer}), before);
      expect_cleared(session);
      session.train_step(batch.examples());
      EXPECT_TRUE(std::isfinite(session.gradient_norm()));
    }
  }
}

}  // namespace

}  // namespace snug
