#include "placement/heuristics.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "picture.h"
#include "placement/improve.h"
#include "placement/validate.h"
#include "random_problem.h"

namespace snug::placement {
namespace {

Placement place_with(std::string_view name, const Problem& problem) {
  const auto heuristic = std::ranges::find(heuristics(), name, &Heuristic::name);
  EXPECT_NE(heuristic, heuristics().end()) << name;
  const Timeline timeline = make_timeline(problem);
  return place_in_order(problem, timeline, heuristic->order(problem, timeline));
}

TEST(PlaceInOrder, PutsEachItemAtTheLowestOffsetFreeDuringItsLife) {
  const Problem problem = problem_of({{"####....", 1},  //
                                      {"..####..", 2},  //
                                      {"....####", 1},  //
                                      {"##......", 2}});
  const Placement placement = place_in_order(problem, make_timeline(problem), {0, 1, 2, 3});
  EXPECT_EQ(draw(problem, placement), (Picture{"DDBBBB..",  //
                                               "DDBBBB..",  //
                                               "AAAACCCC"}));
}

TEST(PlaceInOrder, FillsHolesBelowWhatIsAlreadyPlaced) {
  const Problem problem = problem_of({{"####", 2},    //
                                      {"##..", 2},    //
                                      {"####", 1},    // lies on A and B
                                      {"..##", 2}});  // finds the hole beside B
  const Placement placement = place_in_order(problem, make_timeline(problem), {0, 1, 2, 3});
  EXPECT_EQ(draw(problem, placement), (Picture{"CCCC",  //
                                               "BBDD",  //
                                               "BBDD",  //
                                               "AAAA",  //
                                               "AAAA"}));
}

TEST(Heuristics, ContentionPlacesWhatIsAliveAtThePeakFirstAndTheLongestOfItLowest) {
  const Problem problem = problem_of({{"######......", 1},    // long, but far from the peak
                                      {".......#####", 2},    // the peak is at step 9: five rows
                                      {"........##..", 2},    //
                                      {".........#..", 1},    //
                                      {"######......", 3}});  // larger, but the contention here is only four rows
  const auto& [name, order] = heuristics().front();
  EXPECT_EQ(name, "contention, length");
  EXPECT_EQ(order(problem, make_timeline(problem)), (Order{1, 2, 3, 4, 0}));
}

TEST(Heuristics, NestedLifetimesStackWithoutHoles) {
  const Problem problem = problem_of({{"##########", 1},  //
                                      {".#######..", 2},  // forward values that die in reverse order
                                      {"..#####...", 1},  //
                                      {"..#.......", 2},  // scratch in forward
                                      {"......#...", 1},  // and in backward
                                      {"........#.", 3}});
  const Placement placement = place_with("stack", problem);
  EXPECT_EQ(draw(problem, placement), (Picture{"..D.......",  //
                                               "..D...E...",  //
                                               "..CCCCC.F.",  //
                                               ".BBBBBBBF.",  //
                                               ".BBBBBBBF.",  //
                                               "AAAAAAAAAA"}));
  EXPECT_EQ(placement.height, lower_bound(problem));
  EXPECT_EQ(place_with("stack from the end", problem).height, lower_bound(problem));
}

// Lifetimes of which one holds the other or both are apart, to any depth.
void add_nested(Random& random, std::int32_t begin, std::int32_t end, Problem& problem) {
  if (begin >= end) return;
  problem.items.push_back({kAlignment * random.between(1, 20), begin, end});
  const auto middle = static_cast<std::int32_t>(random.between(begin, end));
  if (middle - begin < end - begin) add_nested(random, begin, middle, problem);
  if (end - middle < end - begin) add_nested(random, middle, end, problem);
}

TEST(Heuristics, TheStackMeetsTheBoundOnEveryNestedProblem) {
  Random random(4);
  for (int repetition = 0; repetition < 100; ++repetition) {
    Problem problem;
    add_nested(random, 0, 60, problem);
    EXPECT_EQ(place_with("stack", problem).height, lower_bound(problem));
  }
}

TEST(Heuristics, AllOfThemPlaceRandomProblemsValidly) {
  Random random(5);
  for (int repetition = 0; repetition < 30; ++repetition) {
    const Problem problem = make_random_problem(random, {});
    for (const Heuristic& heuristic : heuristics()) {
      const Placement placement = place_with(heuristic.name, problem);
      EXPECT_EQ(find_violation(problem, placement).value_or(""), "") << heuristic.name;
      EXPECT_GE(placement.height, lower_bound(problem)) << heuristic.name;
    }
  }
}

TEST(Heuristics, OrdersHoldEveryItemThatHasBytesOnce) {
  Random random(6);
  const Problem problem = make_random_problem(random, {});
  Order expected;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].size.count() > 0) expected.push_back(static_cast<std::int32_t>(i));
  }
  ASSERT_LT(expected.size(), problem.items.size());
  for (const Heuristic& heuristic : heuristics()) {
    Order order = heuristic.order(problem, make_timeline(problem));
    std::ranges::sort(order);
    EXPECT_EQ(order, expected) << heuristic.name;
  }
}

TEST(Improve, MovesWhatSticksOutForward) {
  const Problem problem = problem_of({{"##....", 2},  //
                                      {"....##", 2},  //
                                      {".####.", 1},  //
                                      {"..##..", 3}});
  const Timeline timeline = make_timeline(problem);
  const Order order{0, 1, 2, 3};
  const Attempt start{order, place_in_order(problem, timeline, order)};
  EXPECT_EQ(draw(problem, start.placement), (Picture{"..DD..",  // D finds too little room under C
                                                     "..DD..",  //
                                                     "..DD..",  //
                                                     ".CCCC.",  //
                                                     "AA..BB",  //
                                                     "AA..BB"}));
  std::int64_t nodes_left = 1000;
  const Placement improved = improve(problem, timeline, start, lower_bound(problem), 10, nodes_left);
  EXPECT_EQ(draw(problem, improved), (Picture{".CCCC.",  //
                                              "..DD..",  //
                                              "AADDBB",  //
                                              "AADDBB"}));
  EXPECT_EQ(nodes_left, 1000 - 4) << "one round is enough";
}

TEST(Improve, NeverAnswersWithSomethingHigherNorSpendsMoreThanAllowed) {
  Random random(7);
  int gains = 0;
  for (int repetition = 0; repetition < 30; ++repetition) {
    const Problem problem = make_random_problem(random, {});
    const Timeline timeline = make_timeline(problem);
    const Order order = heuristics().back().order(problem, timeline);
    const Attempt start{order, place_in_order(problem, timeline, order)};
    std::int64_t nodes_left = 1000;
    const Placement improved = improve(problem, timeline, start, lower_bound(problem), 50, nodes_left);
    EXPECT_EQ(find_violation(problem, improved).value_or(""), "");
    EXPECT_LE(improved.height, start.placement.height);
    EXPECT_GE(nodes_left, 0);
    gains += improved.height < start.placement.height ? 1 : 0;
  }
  EXPECT_GE(gains, 25);
}

}  // namespace
}  // namespace snug::placement
