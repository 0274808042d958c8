// How many threads a run takes where its budget has no room for the scratch of all cores'.
#include "api/fitting_threads.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/messages.h"
#include <snug/error.h>

namespace snug {

namespace {

settings::Recipe with_budget() {
  settings::Recipe recipe;
  recipe.budget_bytes = Bytes(1000);
  return recipe;
}

// Plans that take 100 bytes and 10 more for every thread.
class Planner {
 public:
  explicit Planner(std::int64_t budget) : budget_(budget) {}

  Backend open(const settings::Recipe& recipe, int cores) {
    const auto plan = [this](const Backend& backend) {
      tried.push_back(backend.threads);
      const std::int64_t needed = 100 + 10 * backend.threads;
      if (needed > budget_) throw DoesNotFit("too small", needed);
    };
    return open_fitting_backend(
        recipe, plan, [this](const std::string& said) { notes.push_back(said); }, cores);
  }

  std::vector<int> tried;
  std::vector<std::string> notes;

 private:
  std::int64_t budget_;
};

TEST(FittingThreads, AreAllCoresWhereTheyFit) {
  Planner planner(260);
  EXPECT_EQ(planner.open(with_budget(), 16).threads, 16);
  EXPECT_EQ(planner.tried, std::vector{16});
  EXPECT_TRUE(planner.notes.empty());
}

TEST(FittingThreads, AreTheMostThatTheBudgetHasRoomFor) {
  Planner planner(150);
  EXPECT_EQ(planner.open(with_budget(), 16).threads, 4);
  EXPECT_EQ(planner.tried.back(), 4) << "the plan that stays is that of the backend";
  ASSERT_EQ(planner.notes.size(), 1U);
  EXPECT_TRUE(support::mentions(planner.notes[0], {"4", "threads", "16", "budget"}));
  Planner narrow(110);
  EXPECT_EQ(narrow.open(with_budget(), 12).threads, 1);
  EXPECT_EQ(narrow.tried.back(), 1);
}

TEST(FittingThreads, RefuseWithTheSmallestBudgetOfAll) {
  Planner planner(109);
  try {
    planner.open(with_budget(), 16);
    FAIL() << "nothing fits";
  } catch (const DoesNotFit& refusal) {
    EXPECT_EQ(refusal.smallest_budget_bytes(), 110);
  }
  EXPECT_EQ(planner.tried, (std::vector{16, 1})) << "a refusal takes two plans";
  EXPECT_TRUE(planner.notes.empty());
}

TEST(FittingThreads, AreAllCoresWhereBitsMustStay) {
  Planner planner(150);
  settings::Recipe recipe = with_budget();
  recipe.allow = {"exact"};
  EXPECT_THROW(planner.open(recipe, 16), DoesNotFit);
  EXPECT_EQ(planner.tried, std::vector{16});
}

TEST(FittingThreads, AreThoseThatWereAskedFor) {
  Planner planner(150);
  settings::Recipe recipe = with_budget();
  recipe.threads = 16;
  EXPECT_THROW(planner.open(recipe, 16), DoesNotFit);
  EXPECT_EQ(planner.tried, std::vector{16});
}

}  // namespace

}  // namespace snug
