// Where a program finds what it must know about its loss.
#include "ir/loss.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace snug::ops {
namespace {

const std::string kStates =
    "program t batch 2 microbatch 2\n"
    "state x : f32[6x8] input\n"
    "state w : f32[100x8] parameter\n"
    "state w.grad : f32[100x8] gradient\n"
    "state labels : i32[6] input\n"
    "state scalars : u8[64] scalar\n"
    "state weights : f32[6] input\n"
    "section micro\n";

ProgramLoss loss_of_step(const std::string& inputs, const std::string& attributes) {
  const std::string types = " : f32[100x8] gradient, f32[6x8] activation_gradient, f64[3] scalar ; backward\n";
  static Program program;
  program = parse_program(kStates + "%dw, %dx, %metrics = linear_cross_entropy_step(" + inputs + ") {" + attributes + "}" + types,
                          find);
  return loss_of(program);
}

TEST(Loss, OfAClassifierHasAsManyClassesAsItsWeightHasRows) {
  const ProgramLoss loss = loss_of_step("x@0, w@0, labels@0, scalars@0", "label_smoothing=0.0, rows_per_example=3");
  EXPECT_EQ(loss.classes, 100);
  EXPECT_EQ(loss.rows_per_example, 3);
  EXPECT_TRUE(loss.labels.valid());
  EXPECT_FALSE(loss.weights.valid());
  EXPECT_EQ(loss.facts->unit, "tokens");
  EXPECT_FALSE(loss.facts->higher_is_better);
  EXPECT_TRUE(loss.facts->ignores_other_labels);
  EXPECT_FALSE(loss.facts->has_scores());
  EXPECT_TRUE(softmax_cross_entropy.loss->has_scores());
}

TEST(Loss, TakesNoAccumulatorForTheWeightsOfTheRows) {
  const std::string attributes = "accumulate=1, label_smoothing=0.0, rows_per_example=3";
  EXPECT_FALSE(loss_of_step("x@0, w@0, labels@0, scalars@0, w.grad@0", attributes).weights.valid());
  EXPECT_TRUE(loss_of_step("x@0, w@0, labels@0, scalars@0, weights@0, w.grad@0", attributes).weights.valid());
}

}  // namespace
}  // namespace snug::ops
