// The recipes that come with Snug: they are read, and say what the report's tables say.
#include <filesystem>

#include <gtest/gtest.h>

#include "settings/recipe.h"

namespace snug::settings {
namespace {

std::filesystem::path recipe_path(const std::string& name) {
  return std::filesystem::path(SNUG_TEST_SOURCE_DIR).parent_path() / "recipes" / (name + ".toml");
}

TEST(RecipeFiles, AreAllRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recipe_path("x").parent_path())) {
    EXPECT_NO_THROW(read_recipe(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 7);
}

// Tables 3, 5, 6 and 8, and the learning rates as they were meant: a fifth after each milestone.
TEST(RecipeFiles, FollowTheReportsTables) {
  struct Row {
    std::string budget;
    double nonzero;
    std::int64_t microbatch;
    double rate, first_interval, fraction;
  };
  constexpr double kFraction = 0.01377866;
  for (const Row& row : {Row{"6.7MB", 0.3, 10, 0.1, 200, 2 * kFraction}, Row{"5.6MB", 0.2, 10, 0.1, 100, 2 * kFraction},
                         Row{"3.6MB", 0.2, 4, 0.1, 100, 2 * kFraction}, Row{"2.5MB", 0.1, 4, 0.05, 200, kFraction}}) {
    const Recipe recipe = read_recipe(recipe_path("wrn-28-2-" + row.budget));
    EXPECT_EQ(recipe.budget_bytes, parse_bytes(row.budget));
    EXPECT_EQ(recipe.methods.microbatch, row.microbatch);
    EXPECT_EQ(recipe.epochs, 200);
    EXPECT_EQ(recipe.optimizer.learning_rate, row.rate);
    EXPECT_EQ(recipe.schedule.milestones, (std::vector<double>{60, 120, 160}));
    EXPECT_EQ(recipe.schedule.gamma, 0.2);
    EXPECT_EQ(recipe.methods.nonzero, row.nonzero);
    EXPECT_EQ(recipe.sparse.rewire_every.front(), row.first_interval);
    EXPECT_EQ(recipe.sparse.rewire_every.back(), 0);
    EXPECT_DOUBLE_EQ(recipe.sparse.rewire_fraction, row.fraction);
  }
}

}  // namespace
}  // namespace snug::settings
