// Weights kept a second time for the data gradient: not a bit of the training may change, however they came to be what they are.
#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/session.h"

namespace snug::conformance {
namespace {

constexpr std::int64_t kBatch = 9;

class Prepacking : public testing::TestWithParam<const char*> {
 protected:
  train::Session session(bool prepack, Bytes red_zone = Bytes(0)) const {
    CompileOptions options{.batch = kBatch, .red_zone = red_zone};
    if (prepack) options.methods.prepack_weights = true;
    Program graph = frontend::build_zoo_model(GetParam(), {.batch = 4, .classes = 10, .image_size = 32});
    return {compile(graph, backend_, options), backend_, 3};
  }

  static std::vector<double> train(train::Session& session, int steps) {
    std::vector<std::byte> images(kBatch * 32 * 32 * 3);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>((i * 2654435761U) >> 24U);
    std::vector<std::int32_t> labels(kBatch);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
    session.set_learning_rate(0.01);
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) losses.push_back(session.train_step(support::Labeled(images, labels)).loss);
    return losses;
  }

  static void expect_same_states(const train::Session& expected, const train::Session& got) {
    for (const State& state : expected.plan().program.states) {
      if (state.role != Role::parameter && state.role != Role::optimizer) continue;
      EXPECT_EQ(expected.read_state(state.name), got.read_state(state.name)) << state.name;
    }
  }

  static int expect_copies_to_be_current(const train::Session& session) {
    int copies = 0;
    for (const State& state : session.plan().program.states) {
      if (!state.name.ends_with(".packed")) continue;
      ++copies;
      const std::string weight = state.name.substr(0, state.name.size() - std::string(".packed").size());
      EXPECT_EQ(session.read_state(state.name), session.read_state(weight)) << state.name;
    }
    return copies;
  }

  Backend backend_ = backends::cpu_backend(2);
};

TEST_P(Prepacking, ChangesNoBit) {
  train::Session plain = session(false), prepacked = session(true);
  EXPECT_EQ(train(plain, 3), train(prepacked, 3));
  expect_same_states(plain, prepacked);
  if (expect_copies_to_be_current(prepacked) == 0) GTEST_SKIP() << "oneDNN reads the weights as they lie here";
  EXPECT_GT(prepacked.plan().persistent_bytes, plain.plan().persistent_bytes);
}

TEST_P(Prepacking, CopiesFollowWeightsWrittenFromOutside) {
  train::Session plain = session(false), prepacked = session(true);
  for (const State& state : plain.plan().program.states) {
    if (state.role != Role::parameter || !state.trainable) continue;
    std::vector<double> values = plain.read_state(state.name);
    for (double& value : values) value *= 0.75;
    plain.write_state(state.name, values);
    prepacked.write_state(state.name, values);
  }
  expect_copies_to_be_current(prepacked);
  EXPECT_EQ(train(plain, 2), train(prepacked, 2));
  expect_same_states(plain, prepacked);
}

TEST_P(Prepacking, KeepsToItsBytesInCheckingMode) {
  train::Session plain = session(false), checked = session(true, Bytes(128));
  EXPECT_EQ(train(plain, 2), train(checked, 2));
}

INSTANTIATE_TEST_SUITE_P(Models, Prepacking, testing::Values("small-cnn", "wrn-10-1", "preresnet-29"),
                         [](const testing::TestParamInfo<const char*>& model) {
                           std::string name = model.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace snug::conformance
