// Checkpointing is exact: whatever backward computes again, losses and states have the bits of plain training.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "base/philox.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "report/flops.h"
#include "train/session.h"

namespace snug {

namespace {

constexpr std::int64_t kMicrobatch = 4;
constexpr std::int64_t kBatch = 6;  // the second microbatch is short

// Dropout, augmented images, unfused ReLUs with and without batch norm, a maximum's argmax, group norm, a bias.
Graph dropout_network() {
  frontend::GraphBuilder b("dropout-network", kMicrobatch);
  ValueId x = b.images({.channels = 3, .height = 16, .width = 16, .crop_padding = 2});
  x = b.relu("relu1", b.batch_norm("bn1", b.conv2d("conv1", x, {.out_channels = 16, .padding = 1})));
  x = b.dropout("dropout1", b.relu("relu2", b.conv2d("conv2", x, {.out_channels = 16, .padding = 1, .bias = true})), 0.3);
  x = b.max_pool("pool", x);
  x = b.relu("relu3", b.group_norm("gn3", b.conv2d("conv3", x, {.out_channels = 16, .padding = 1}), 4));
  x = b.dropout("dropout2", x, 0.2);
  x = b.relu("relu4", b.conv2d("conv4", x, {.out_channels = 32, .padding = 1}));
  x = b.relu("relu5", b.linear("fc1", b.flatten("flatten", x), 24));
  b.softmax_cross_entropy(b.linear("fc2", b.dropout("dropout3", x, 0.5), 10));
  return std::move(b).finish();
}

Graph model(const std::string& name) {
  return name == "dropout-network" ? dropout_network()
                                   : frontend::build_zoo_model(name, {.batch = kMicrobatch, .image_size = 32});
}

struct Outcome {
  std::vector<double> losses;
  std::vector<std::byte> states;
  Bytes planned;
  Bytes measured;
};

Outcome trained(const std::string& name, std::string_view strategy, Bytes red_zone = Bytes(0)) {
  const Backend backend = backends::cpu_backend(2);
  train::Session session(
      compile(model(name), backend, {.batch = kBatch, .checkpoint = parse_checkpoint_strategy(strategy), .red_zone = red_zone}),
      backend, 5);
  session.set_learning_rate(0.05);
  const Program& program = session.plan().program;
  const auto bytes = static_cast<std::size_t>(program.state(program.find_state("images")).type.bytes().count() / kMicrobatch);
  Outcome outcome;
  if (red_zone == Bytes(0)) session.executor().start_measuring();
  for (std::uint64_t step = 0; step < 4; ++step) {
    std::vector<std::byte> images;
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < bytes * kBatch; ++i) images.push_back(static_cast<std::byte>(philox(3, i, step).word[0]));
    for (std::int32_t i = 0; i < kBatch; ++i) labels.push_back((i * 7 + static_cast<std::int32_t>(step)) % 10);
    outcome.losses.push_back(session.train_step({images, labels}).loss);
  }
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (program.states[i].role == Role::input || program.states[i].role == Role::scalar) continue;
    const std::size_t before = outcome.states.size();
    outcome.states.resize(before + session.logical_bytes(StateId(i)));
    session.read_logical(StateId(i), std::span(outcome.states).subspan(before));
  }
  outcome.planned = session.plan().planned_peak_bytes;
  if (red_zone == Bytes(0)) outcome.measured = session.executor().measured_peak_bytes();
  return outcome;
}

void expect_same_bits(const Outcome& outcome, const Outcome& plain) {
  ASSERT_EQ(outcome.losses.size(), plain.losses.size());
  EXPECT_EQ(std::memcmp(outcome.losses.data(), plain.losses.data(), plain.losses.size() * sizeof(double)), 0);
  EXPECT_TRUE(outcome.states == plain.states);
}

class Checkpointed : public testing::TestWithParam<std::string> {};

TEST_P(Checkpointed, TrainingHasThePlainOnesBitsAndThePlannedBytes) {
  const Outcome plain = trained(GetParam(), "none");
  EXPECT_GT(plain.losses.front(), 0);
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  std::vector<std::string> strategies{"no-bn", "every-1", "every-2",       "sqrt",         "log",
                                      "chen",  "optimal", "optimal:600KB", "optimal:1.2MB"};
  if (GetParam() == "wrn-10-1") strategies.insert(strategies.end(), {"residual-1", "residual-2", "residual-1*", "residual-2*"});
  for (const std::string& strategy : strategies) {
    SCOPED_TRACE(strategy);
    const Outcome outcome = trained(GetParam(), strategy);
    expect_same_bits(outcome, plain);
    EXPECT_EQ(outcome.measured, outcome.planned);
    EXPECT_LE(outcome.planned, plain.planned);
  }
}

TEST_P(Checkpointed, CheckingModeFindsNothing) {
  expect_same_bits(trained(GetParam(), "sqrt", Bytes(64)), trained(GetParam(), "none"));
}

INSTANTIATE_TEST_SUITE_P(Models, Checkpointed, testing::Values("small-cnn", "wrn-10-1", "dropout-network"), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CheckpointedFlops, AreCountedAndBelowOneMoreForwardPassForSegments) {
  const Backend backend = backends::cpu_backend(1);
  const auto ratio = [&](std::string_view strategy) {
    const Graph graph = frontend::build_zoo_model("wrn-28-2", {.batch = 2});
    return report::flops_ratio(
        report::flops_of_step(compile(graph, backend, {.checkpoint = parse_checkpoint_strategy(strategy)}).program).step);
  };
  EXPECT_EQ(ratio("none"), 1.0);
  EXPECT_GT(ratio("no-bn"), 1.0);
  EXPECT_LT(ratio("no-bn"), 1.01);  // the report: less than one percent
  for (const char* strategy : {"sqrt", "every-2", "residual-1", "residual-2", "residual-2*"}) {
    EXPECT_GT(ratio(strategy), 1.1) << strategy;
    EXPECT_LT(ratio(strategy), 1.34) << strategy;
  }
  EXPECT_GT(ratio("log"), 1.34);
}

}  // namespace

}  // namespace snug
