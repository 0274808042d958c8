#include "settings/knobs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "settings/told.h"
#include "support/files.h"

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
    EXPECT_EQ(message_of<UserError>([&] { take(knob(key), rubbish, recipe, SaidBy::recipe); }),
              std::string(key) + " is yes or no, not 'rubbish'");
  }
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
  EXPECT_EQ(message_of<UserError>([&] { check_recipe(recipe, SaidBy::flags); }),
            "--momentum-bits is for the CPU so far; leave it out, or use --device cpu");
}

}  // namespace

}  // namespace snug::settings
