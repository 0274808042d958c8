#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/ops.h"

namespace snug::ops {
namespace {

TEST(OpList, EveryOpIsFoundUnderItsOwnName) {
  std::set<std::string_view> names;
  for (const OpDef* op : all()) {
    EXPECT_EQ(find(op->name), op);
    EXPECT_TRUE(names.insert(op->name).second) << op->name << " is there twice";
  }
  EXPECT_EQ(find("melt"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(OpList, EveryOpRefusesToWorkOnNothing) {
  for (const OpDef* op : all()) {
    try {
      infer_types(*op, {{}, Attributes()});
      ADD_FAILURE() << op->name << " was content with no operands";
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(std::string(op->name) + ": ")) << error.what();
    }
  }
}

TEST(OpList, EveryRecipeBuildsAGradient) {
  for (const OpDef* op : all()) {
    std::set<std::string_view> names;
    for (const GradientRecipe& recipe : op->gradients) {
      EXPECT_NE(recipe.build, nullptr) << op->name;
      EXPECT_TRUE(names.insert(recipe.name).second) << op->name << " has two recipes '" << recipe.name << "'";
    }
  }
}

TEST(OpList, AViewPromisesNothingBecauseItNeverWrites) {
  for (const OpDef* op : all()) {
    EXPECT_TRUE(!op->is_view || op->in_place.empty()) << op->name;
  }
}

TEST(OpList, WhatMovesSomethingOnceIsNotRecomputed) {
  EXPECT_FALSE(batch_norm_running.may_recompute);
  EXPECT_FALSE(sgd.may_recompute);
  EXPECT_TRUE(batch_norm_statistics.may_recompute);
  EXPECT_TRUE(batch_norm_apply.may_recompute);
}

// What backward keeps: the heart of the memory a model takes.
TEST(Recipes, KeepNoMoreThanTheyNeed) {
  const auto recipe = [](const OpDef& op, std::size_t i) { return op.gradients[i]; };
  EXPECT_EQ(recipe(relu, 0).keeps_outputs, 0b1U);  // the output, often the next op's input
  EXPECT_EQ(recipe(relu, 0).keeps_inputs, 0U);
  EXPECT_NE(recipe(relu, 1).make_extra, nullptr);  // or one bit an element
  EXPECT_EQ(recipe(relu, 1).keeps_outputs | recipe(relu, 1).keeps_inputs, 0U);
  EXPECT_NE(recipe(max_pool, 1).make_extra, nullptr);
  EXPECT_EQ(recipe(max_pool, 1).keeps_outputs | recipe(max_pool, 1).keeps_inputs, 0U);
  for (const OpDef* op : {&dropout, &add, &avg_pool, &global_avg_pool, &shortcut, &reshape, &relayout, &rotary, &add_positions}) {
    ASSERT_EQ(op->gradients.size(), 1U) << op->name;
    EXPECT_EQ(op->gradients[0].keeps_inputs | op->gradients[0].keeps_outputs, 0U) << op->name;
    EXPECT_EQ(op->gradients[0].make_extra, nullptr) << op->name;
  }
  EXPECT_EQ(recipe(conv2d, 0).keeps_outputs, 0U);
  EXPECT_EQ(recipe(linear, 0).keeps_outputs, 0U);
  EXPECT_EQ(recipe(batch_norm_apply, 0).keeps_outputs, 0U);
  EXPECT_EQ(recipe(embedding, 0).keeps_inputs, 0b01U);  // not the table
  EXPECT_EQ(recipe(layer_norm, 0).keeps_outputs, 0b110U);
  EXPECT_EQ(recipe(rms_norm, 0).keeps_outputs, 0b10U);
  EXPECT_EQ(recipe(softmax, 0).keeps_inputs, 0U);
  EXPECT_EQ(recipe(attention, 2).keeps_outputs, 0U);
}

// Attention's output and sums take a pass over all pairs of tokens; that they take few bytes is no reason to make them twice.
TEST(Recipes, ThatRepeatForwardSayIt) {
  EXPECT_FALSE(attention.gradients[0].repeats_forward);
  EXPECT_FALSE(attention.gradients[1].repeats_forward);
  EXPECT_TRUE(attention.gradients[2].repeats_forward);
}

TEST(Recipes, OfALossThatMakesItsOutputsInBackwardSayIt) {
  EXPECT_TRUE(linear_cross_entropy.gradients[0].makes_outputs);
  EXPECT_FALSE(softmax_cross_entropy.gradients[0].makes_outputs);
  // Then the step stands for the loss.
  EXPECT_EQ(linear_cross_entropy_step.loss, linear_cross_entropy.loss);
}

TEST(OpList, EvaluationDrawsNoRandomNumbersInAttention) {
  Attributes attributes{{"dropout", 0.3}, {"scale", 0.5}};
  attention.for_evaluation(attributes);
  EXPECT_EQ(attributes, (Attributes{{"dropout", 0.0}, {"scale", 0.5}}));
}

}  // namespace
}  // namespace snug::ops
