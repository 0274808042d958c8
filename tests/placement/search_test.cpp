#include "placement/search.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "exhaustive.h"
#include "picture.h"
#include "placement/validate.h"
#include "random_problem.h"

namespace snug::placement {
namespace {

constexpr SearchLimits kHeuristicsOnly{.improvement_nodes = 0, .exact_nodes = 0, .exact_items = 0};

TEST(Place, NothingNeedsNoBytes) {
  const Result result = place({});
  EXPECT_TRUE(result.placement.offsets.empty());
  EXPECT_EQ(result.placement.height, Bytes(0));
  EXPECT_TRUE(result.is_optimal);
}

TEST(Place, OneItemNeedsItsBytesAndNotOneMore) {
  const Result result = place({.items = {{Bytes(1001), 7, 8}}});
  EXPECT_EQ(result.placement.offsets.at(0), Bytes(0));
  EXPECT_EQ(result.placement.height, Bytes(1001));
}

TEST(Place, AnItemOfNoBytesLiesAtZero) {
  const Result result = place({.items = {{Bytes(0), 0, 9}, {Bytes(64), 0, 9}, {Bytes(0), 3, 4}}});
  EXPECT_EQ(result.placement.offsets, (std::vector<Bytes>{Bytes(0), Bytes(0), Bytes(0)}));
  EXPECT_EQ(result.placement.height, Bytes(64));
  EXPECT_EQ(place({.items = {{Bytes(0), 0, 9}}}).placement.height, Bytes(0));
}

TEST(Place, LifetimesThatTouchShareBytes) {
  const Problem problem = problem_of({{"##..", 2}, {"..##", 2}});
  EXPECT_EQ(draw(problem, place(problem).placement), (Picture{"AABB",  //
                                                              "AABB"}));
}

TEST(Place, ItemsAliveTogetherDoNotOverlap) {
  const Problem problem = problem_of({{"###.", 2}, {".###", 1}});
  EXPECT_EQ(draw(problem, place(problem).placement), (Picture{".BBB",  //
                                                              "AAA.",  //
                                                              "AAA."}));
}

TEST(Place, AnItemFindsTheHoleBetweenTwoOthers) {
  const Problem problem = problem_of({{"########", 2},  //
                                      {"###.....", 2},  //
                                      {"...##...", 2},  //
                                      {".....###", 2}});
  EXPECT_EQ(draw(problem, place(problem).placement), (Picture{"BBBCCDDD",  //
                                                              "BBBCCDDD",  //
                                                              "AAAAAAAA",  //
                                                              "AAAAAAAA"}));
}

TEST(Place, PutsTheItemWithTheDearestPaddingOnTop) {
  const Result result = place({.items = {{Bytes(65), 0, 1}, {Bytes(128), 0, 1}, {Bytes(100), 0, 1}}});
  EXPECT_EQ(result.placement.height, Bytes(128 + 128 + 65));
  EXPECT_EQ(result.placement.offsets[0], Bytes(256));
}

TEST(Place, OffsetsFollowTheAlignmentOfTheProblem) {
  const Result result = place({.items = {{Bytes(100), 0, 1}, {Bytes(100), 0, 1}}, .alignment = Bytes(4096)});
  EXPECT_EQ(result.placement.height, Bytes(4196));
}

TEST(Place, RefusesAProblemThatMakesNoSense) { EXPECT_THROW(place({.items = {{Bytes(64), 3, 3}}}), InternalError); }

TEST(Place, SolvesTinyProblemsExactly) {
  Random random(12);
  int won_by_search = 0;
  for (int repetition = 0; repetition < 400; ++repetition) {
    const auto items = static_cast<std::size_t>(random.between(1, 7));
    const Problem problem = make_random_problem(random, {.items = items, .steps = 8, .longest_life = 5, .largest_size = 1000});
    const Result result = place(problem);
    ASSERT_EQ(find_violation(problem, result.placement).value_or(""), "");
    ASSERT_EQ(result.placement.height, lowest_height_by_every_order(problem));
    EXPECT_TRUE(result.is_optimal);
    won_by_search += place(problem, kHeuristicsOnly).placement.height > result.placement.height ? 1 : 0;
  }
  EXPECT_GT(won_by_search, 0) << "the search must have had something to do";
}

TEST(Place, RandomProblemsAreAlwaysPlacedValidlyAndNotBelowTheBound) {
  Random random(13);
  for (int repetition = 0; repetition < 60; ++repetition) {
    const auto items = static_cast<std::size_t>(random.between(1, 300));
    const auto steps = static_cast<std::int32_t>(random.between(1, 400));
    const auto longest_life = static_cast<std::int32_t>(random.between(1, steps));
    const Problem problem = make_random_problem(
        random, {.items = items, .steps = steps, .longest_life = longest_life, .largest_size = random.between(1, 5000)});
    const Result result = place(problem, {.improvement_nodes = 5000, .exact_nodes = 5000});
    EXPECT_EQ(find_violation(problem, result.placement).value_or(""), "");
    EXPECT_EQ(result.bound, lower_bound(problem));
    EXPECT_GE(result.placement.height, result.bound);
    EXPECT_FALSE(result.method.empty());
  }
}

TEST(Place, MoreSearchIsNeverWorseAndStaysWithinItsLimits) {
  Random random(14);
  int gains = 0;
  for (int repetition = 0; repetition < 20; ++repetition) {
    const Problem problem =
        make_random_problem(random, {.items = 150, .steps = 150, .longest_life = 50, .largest_size = 100'000});
    const Result quick = place(problem, kHeuristicsOnly);
    const Result thorough = place(problem, {.improvement_nodes = 20'000, .exact_nodes = 0});
    EXPECT_EQ(quick.nodes, 0);
    EXPECT_LE(thorough.nodes, 20'000);
    EXPECT_LE(thorough.placement.height, quick.placement.height);
    gains += thorough.placement.height < quick.placement.height ? 1 : 0;
  }
  EXPECT_GE(gains, 10);
}

TEST(Place, TheSameProblemGetsTheSamePlacement) {
  Random random(15);
  const Problem problem = make_random_problem(random, {.items = 200});
  const Result first = place(problem);
  const Result second = place(problem);
  EXPECT_EQ(first.placement.offsets, second.placement.offsets);
  EXPECT_EQ(first.method, second.method);
  EXPECT_EQ(first.nodes, second.nodes);
}

TEST(Place, TheOriginOfTimeDoesNotMatter) {
  Random random(16);
  Problem problem = make_random_problem(random, {.items = 80});
  const Placement placement = place(problem).placement;
  for (Item& item : problem.items) {
    item.begin -= 1000;
    item.end -= 1000;
  }
  EXPECT_EQ(place(problem).placement.offsets, placement.offsets);
}

}  // namespace
}  // namespace snug::placement
