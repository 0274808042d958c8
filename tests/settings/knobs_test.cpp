#include "settings/knobs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "settings/optimizer.h"
#include "settings/told.h"
#include "support/files.h"
#include "support/messages.h"

namespace snug::settings {

using support::message_of;

namespace {

// Something that the knob's flag takes.
std::string value_for(const Knob& knob) {
  Recipe recipe;
  const Slot slot = knob.slot(recipe);
  if (const auto* choices = std::get_if<Choices>(&knob.values)) return std::string(choices->front());
  if (const auto* range = std::get_if<CountRange>(&knob.values)) return std::to_string(range->least);
  if (const auto* range = std::get_if<NumberRange>(&knob.values)) return range->least_included ? "0.5" : "1";
  if (std::holds_alternative<bool*>(slot) || std::holds_alternative<std::optional<bool>*>(slot)) return "yes";
  if (std::holds_alternative<std::optional<CheckpointStrategy>*>(slot)) return "sqrt";
  if (std::holds_alternative<std::optional<Bytes>*>(slot)) return "3MB";
  return "exact";
}

TEST(Knobs, EveryOneTakesItsValuesAndIsResetAgain) {
  for (const Knob& knob : knobs()) {
    Recipe recipe;
    const std::vector<std::string> texts{value_for(knob)};
    ASSERT_NO_THROW(take(knob, texts, recipe, SaidBy::recipe)) << knob.key;
    EXPECT_TRUE(is_told(knob, recipe)) << knob.key;
    EXPECT_FALSE(show_value(knob, recipe).empty()) << knob.key;
    reset(knob, recipe);
    EXPECT_TRUE(is_same(knob, recipe, Recipe())) << knob.key;
  }
}

TEST(Knobs, ASwitchIsTurnedOffTooAndTakesNothingElse) {
  for (const std::string_view key : {"skip_bad_images", "optimizer.drop_gradients", "init_partial", "init_strict"}) {
    Recipe recipe;
    const std::vector<std::string> no{"no"}, rubbish{"rubbish"};
    take(knob(key), no, recipe, SaidBy::recipe);
    EXPECT_EQ(show_value(knob(key), recipe), "no") << key;
    EXPECT_TRUE(support::mentions(message_of<UserError>([&] { take(knob(key), rubbish, recipe, SaidBy::recipe); }),
                                  {std::string(key), "yes", "'rubbish'"}));
  }
}

TEST(Knobs, HelpNamesWhatAnOptimizerDoesWhereNothingIsTold) {
  for (const std::string_view kind : kOptimizers) {
    const Recipe whole = with_whole_optimizer({.model = "small-cnn"}, kind);
    EXPECT_EQ(with_whole_optimizer(whole, "adamw"), whole);
    for (const Knob& knob : knobs()) {
      if (!knob.key.starts_with("optimizer.") || knob.key == "optimizer.kind" || !is_told(knob, whole)) continue;
      if (is_same(knob, whole, Recipe())) continue;
      EXPECT_TRUE(knob.optimizer.empty() || knob.optimizer == kind) << knob.key;
      std::string value = show_value(knob, whole);
      if (value == "1e-08") value = "1e-8";
      const std::string of_kind = knob.optimizer.empty() ? value + " with " + std::string(kind) : value;
      EXPECT_NE(knob.otherwise.find(of_kind), std::string_view::npos) << knob.key << ": " << knob.otherwise << ", " << of_kind;
    }
  }
}

TEST(Told, AnotherOptimizerLeavesTheSettingsOfTheRecipesOwn) {
  Recipe older{.model = "small-cnn",
               .optimizer = {.learning_rate = 0.05, .momentum = 0.8, .nesterov = false, .weight_decay = 1e-4, .clip_norm = 1}};
  older.methods.drop_gradients = true;
  const Recipe told = told_recipe(older, {{"optimizer.kind", {"adamw"}}, {"optimizer.beta2", {"0.95"}}}, SaidBy::flags);
  Recipe expected{.model = "small-cnn", .optimizer = {.kind = "adamw", .beta2 = 0.95, .clip_norm = 1}};
  EXPECT_EQ(told, expected);
  // Of the same optimizer everything stays, and so does what says nothing of an optimizer.
  const Recipe same = told_recipe(older, {{"optimizer.kind", {"sgd"}}}, SaidBy::flags);
  EXPECT_EQ(same.optimizer.momentum, 0.8);
  EXPECT_EQ(same.optimizer.learning_rate, 0.05);
  const Recipe open{.model = "small-cnn", .optimizer = {.learning_rate = 0.05}};
  EXPECT_EQ(told_recipe(open, {{"optimizer.kind", {"adamw"}}}, SaidBy::flags).optimizer.learning_rate, 0.05);
}

TEST(Optimizer, WhatIsNotToldIsAsSuitsIt) {
  const OptimizerRecipe sgd = with_whole_optimizer({.model = "small-cnn"}, "sgd").optimizer;
  EXPECT_EQ(sgd, (OptimizerRecipe{.kind = "sgd", .learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4}));
  const OptimizerRecipe adamw = with_whole_optimizer({.model = "small-cnn"}, "adamw").optimizer;
  EXPECT_EQ(adamw, (OptimizerRecipe{.kind = "adamw",
                                    .learning_rate = 3e-4,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .epsilon = 1e-8,
                                    .weight_decay = 0.01,
                                    .decay_norms = false}));
  EXPECT_EQ(with_whole_optimizer({.model = "small-cnn", .optimizer = {.kind = "sgd"}}, "adamw").optimizer, sgd);
}

TEST(Optimizer, SettingsOfAnotherAreRefusedByName) {
  const auto refused = [](const OptimizerRecipe& optimizer, std::string_view suitable) {
    return message_of<UserError>([&] { with_whole_optimizer({.model = "x", .optimizer = optimizer}, suitable); });
  };
  EXPECT_TRUE(support::mentions(refused({.momentum = 0.9}, "adamw"), {"optimizer.momentum", "sgd", "adamw", "kind"}));
  EXPECT_TRUE(support::mentions(refused({.beta1 = 0.9}, "sgd"), {"optimizer.beta1", "adamw", "sgd", "kind"}));
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] {
                                  check_recipe({.model = "x", .optimizer = {.momentum = 0.9, .epsilon = 1e-8}}, SaidBy::flags);
                                }),
                                {"--epsilon", "adamw", "sgd", "--optimizer"}));
}

TEST(Optimizer, SixteenBitMomentsMayBeRoundedEitherWay) {
  Recipe recipe{.model = "x", .rounding = "nearest", .optimizer = {.kind = "adamw"}};
  EXPECT_TRUE(
      support::mentions(message_of<UserError>([&] { check_recipe(recipe, SaidBy::recipe); }), {"rounding", "16", "fp32"}));
  recipe.methods.moment_bits = 16;
  EXPECT_NO_THROW(check_recipe(recipe, SaidBy::recipe));
}

// Recipes of earlier versions spell out fp32 where nothing was told.
TEST(Told, SixteenBitsThatAreAllowedAreAChoiceBesideASpelledOutDefault) {
  Recipe older{.model = "small-cnn", .allow = {"exact", "precision"}};
  older.methods.precision = DType::f32;
  EXPECT_FALSE(told_recipe(older, {}, SaidBy::flags).methods.precision);
  const Recipe told = told_recipe(older, {{"precision", {"fp32"}}}, SaidBy::flags);
  EXPECT_EQ(told.methods.precision, DType::f32);
  EXPECT_EQ(told.allow, std::vector<std::string>{"exact"});
}

TEST(Told, ADefaultThatIsSpelledOutGoesWithEveryDevice) {
  Recipe recipe{.model = "small-cnn", .device = "cuda"};
  recipe.methods.momentum_bits = 32;
  recipe.methods.drop_gradients = false;
  EXPECT_NO_THROW(check_recipe(recipe, SaidBy::recipe));
  recipe.methods.momentum_bits = 8;
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { check_recipe(recipe, SaidBy::flags); }),
                                {"--momentum-bits", "CPU", "--device", "cpu"}));
}

}  // namespace

}  // namespace snug::settings
