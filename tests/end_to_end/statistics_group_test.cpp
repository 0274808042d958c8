// Microbatches simulated inside one batch: with batch-norm statistics over groups of b a step does what true microbatches of b
// do, however it is split, up to the order in which gradients are added.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/philox.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/session.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 14;
constexpr std::int64_t kGroup = 4;  // groups of 4, 4, 4 and 2
constexpr std::int64_t kSize = 16;

struct Split {
  std::int64_t microbatch;
  std::int64_t group;
};

struct Outcome {
  std::vector<double> losses;
  std::vector<std::pair<std::string, std::vector<double>>> states;  // parameters, momenta, running statistics
};

Outcome trained(const Backend& backend, const std::string& model, DType dtype, const Split& split) {
  const Program graph = frontend::build_zoo_model(
      model, {.batch = split.microbatch, .image_size = kSize, .staged_as_bytes = true, .statistics_group = split.group});
  train::Session session(compile(graph, backend, {.batch = kBatch, .methods = {.precision = dtype}}), backend, 11);
  session.set_learning_rate(0.05);
  Outcome outcome;
  // An epoch's last batch is short: 7 examples are groups of 4 and 3, and two groups stay empty.
  for (const std::int64_t examples : {kBatch, kBatch, std::int64_t{7}, kBatch, kBatch}) {
    const auto step = static_cast<std::uint64_t>(outcome.losses.size());
    std::vector<std::byte> images;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < examples * kSize * kSize * 3; ++i)
      images.push_back(static_cast<std::byte>(philox(3, static_cast<std::uint64_t>(i), step).word[0]));
    for (std::int64_t i = 0; i < examples; ++i) labels.push_back(static_cast<std::int32_t>((i * 7 + examples) % 10));
    const train::Result result = session.train_step(support::Labeled(images, labels));
    EXPECT_EQ(result.examples, examples);
    outcome.losses.push_back(result.loss);
  }
  for (const State& state : session.plan().program.states) {
    if (state.role == Role::parameter || state.role == Role::optimizer || state.role == Role::statistic)
      outcome.states.emplace_back(state.name, session.read_state(state.name));
  }
  return outcome;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / std::max(length, 1e-12));
}

// The largest of the relative distances of losses and of each state.
double distance(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.states.size(), b.states.size());
  double largest = distance(a.losses, b.losses);
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    EXPECT_EQ(a.states[i].first, b.states[i].first);
    largest = std::max(largest, distance(a.states[i].second, b.states[i].second));
  }
  return largest;
}

struct Setting {
  std::string name;
  bool cpu;
  DType dtype;
  std::string model;
  double tolerance;
};

class SimulatedMicrobatches : public testing::TestWithParam<Setting> {};

TEST_P(SimulatedMicrobatches, AgreeWithTrueOnesHoweverTheBatchIsSplit) {
  const Setting& setting = GetParam();
  const Backend backend = setting.cpu ? backends::cpu_backend(2) : backends::reference_backend(2);
  const auto run = [&](const Split& split) { return trained(backend, setting.model, setting.dtype, split); };
  const Outcome true_ones = run({.microbatch = kGroup, .group = 0});
  EXPECT_NE(true_ones.losses.front(), true_ones.losses.back());
  EXPECT_LT(distance(run({.microbatch = kBatch, .group = kGroup}), true_ones), setting.tolerance);
  EXPECT_LT(distance(run({.microbatch = 2 * kGroup, .group = kGroup}), true_ones), setting.tolerance);
  // Statistics over the whole batch are another computation.
  EXPECT_GT(distance(run({.microbatch = kBatch, .group = 0}), true_ones), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Backends, SimulatedMicrobatches,
                         testing::Values(Setting{"reference_f64", false, DType::f64, "small-cnn", 1e-12},
                                         Setting{"reference_f32", false, DType::f32, "small-cnn", 1e-5},
                                         Setting{"cpu_small_cnn", true, DType::f32, "small-cnn", 1e-5},
                                         Setting{"cpu_wrn", true, DType::f32, "wrn-10-1", 1e-5}),
                         [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace snug
