// What is left of a program that only evaluates: forward, its scores, and no byte of training.
#include "passes/model/evaluate_only.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/loss.h"
#include "ops/ops.h"

namespace snug::testing {
namespace {

Program lowered(const std::string& model, const ops::UpdateOptions& update = {}) {
  const AcceptingBackend backend;
  std::vector<PassTiming> timings;
  return run_passes(frontend::build_zoo_model(model, {.batch = 4}), model_passes(), {.backend = backend, .update = update}, {},
                    timings);
}

TEST(EvaluateOnly, KeepsTheScoresAndNothingOfTraining) {
  const Program before = lowered("small-cnn", {.clip_norm = 1});
  const Program after = evaluate_only(before);
  verify(after, "after evaluate_only");
  ASSERT_EQ(after.sections.size(), 1U);
  EXPECT_EQ(after.sections.front().kind, SectionKind::eval);
  for (const State& state : after.states) {
    EXPECT_NE(state.role, Role::gradient) << state.name;
    EXPECT_NE(state.role, Role::optimizer) << state.name;
  }
  EXPECT_FALSE(after.gradient_norm.valid());
  ASSERT_TRUE(after.scores.valid());
  EXPECT_EQ(after.state(after.scores).type.shape, Shape({4, 10}));
  const auto weights = [](const Program& program) {
    return std::ranges::count_if(program.states, [](const State& state) { return state.role == Role::parameter; });
  };
  EXPECT_EQ(weights(after), weights(before));
}

TEST(EvaluateOnly, TheLossReadsTheKeptScores) {
  const std::string text = print(evaluate_only(lowered("small-cnn")));
  EXPECT_NE(text.find("  scores@1 = linear("), std::string::npos) << text;
  EXPECT_NE(text.find(" = softmax_cross_entropy(scores@1, labels@0, scalars@0)"), std::string::npos) << text;
  EXPECT_EQ(loss_of(evaluate_only(lowered("small-cnn"))).classes, 10);
}

// Of a loss that has the classifier in it, the first input is no score.
TEST(EvaluateOnly, ALossThatMakesItsScoresItselfKeepsNone) {
  frontend::GraphBuilder b("tokens", 2);
  const ValueId weight = b.parameter("weight", {.dtype = DType::f32, .shape = {5, 4}}, {});
  const ValueId labels = b.input("labels", {.dtype = DType::i32, .shape = {2}});
  const ValueId x = b.linear("layer", b.features({3}), 4);
  b.loss("loss", ops::linear_cross_entropy, {x, weight, labels, b.scalars()}, {{"label_smoothing", 0.0}});
  std::vector<PassTiming> timings;
  const AcceptingBackend backend;
  const Program program = run_passes(std::move(b).finish(), model_passes(), {.backend = backend}, {}, timings);
  EXPECT_EQ(loss_of(program).classes, 5);
  const Program evaluation = evaluate_only(program);
  EXPECT_FALSE(evaluation.scores.valid());
  EXPECT_EQ(evaluation.sections.size(), 1U);
}

TEST(EvaluateOnly, PrintsAndReadsBack) {
  const Program program = evaluate_only(lowered("wrn-10-1"));
  const Program read = parse_program(print(program), ops::find);
  EXPECT_EQ(print(read), print(program));
  EXPECT_EQ(read.scores, program.scores);
}

}  // namespace
}  // namespace snug::testing
