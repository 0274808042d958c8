#include "placement/timeline.h"

#include <gtest/gtest.h>

#include "picture.h"
#include "random_problem.h"

namespace snug::placement {
namespace {

TEST(Timeline, StepsAtWhichNothingEndsBeforeSomethingBeginsAreOneMoment) {
  const Timeline timeline = make_timeline(problem_of({{"##########"},     //
                                                      {"..###....."},     // all three begin before the first one ends: moment 0
                                                      {"...####..."},     //
                                                      {"........#."}}));  // alone with the first: moment 1
  EXPECT_EQ(timeline.moments, 2);
  EXPECT_EQ(timeline.spans[0].begin, 0);
  EXPECT_EQ(timeline.spans[0].end, 2);
  EXPECT_EQ(timeline.spans[1].end, 1);
  EXPECT_EQ(timeline.spans[2].end, 1);
  EXPECT_EQ(timeline.spans[3].begin, 1);
}

TEST(Timeline, HasNoMomentsWithoutBytes) {
  EXPECT_EQ(make_timeline({}).moments, 0);
  EXPECT_EQ(make_timeline({.items = {{Bytes(0), 0, 5}}}).moments, 0);
}

TEST(Timeline, ItemsShareAMomentExactlyWhenTheyShareAStep) {
  Random random(2);
  for (int repetition = 0; repetition < 50; ++repetition) {
    const Problem problem = make_random_problem(random, {.items = 40, .steps = 30, .longest_life = 10, .largest_size = 100});
    const Timeline timeline = make_timeline(problem);
    for (std::size_t a = 0; a < problem.items.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (problem.items[a].size.count() == 0 || problem.items[b].size.count() == 0) continue;
        const bool share_step = problem.items[a].begin < problem.items[b].end && problem.items[b].begin < problem.items[a].end;
        EXPECT_EQ(timeline.spans[a].overlaps(timeline.spans[b]), share_step);
      }
    }
  }
}

}  // namespace
}  // namespace snug::placement
