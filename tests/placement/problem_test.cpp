#include "placement/problem.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "picture.h"

namespace snug::placement {
namespace {

TEST(LowerBound, IsZeroWithoutItems) { EXPECT_EQ(lower_bound(Problem{}), Bytes(0)); }

TEST(LowerBound, IsTheMostBytesAliveAtOneStep) {
  const Problem problem = problem_of({{"####....", 2},  //
                                      {"..####..", 3},  // rows alive: 2 2 5 5 3 4 1 1
                                      {".....###", 1}});
  EXPECT_EQ(lower_bound(problem), kAlignment * 5);
}

TEST(LowerBound, LifetimesThatOnlyTouchDoNotAddUp) {
  EXPECT_EQ(lower_bound(problem_of({{"##..", 3}, {"..##", 2}})), kAlignment * 3);
}

TEST(LowerBound, LeavesOutThePaddingOfTheItemOnTop) {
  EXPECT_EQ(lower_bound({.items = {{Bytes(1), 0, 1}}}), Bytes(1));
  // 65 bytes take 128 below another item; 100 bytes take 100 on top. The other way round it would be 128 + 65 = 193 bytes.
  EXPECT_EQ(lower_bound({.items = {{Bytes(100), 0, 1}, {Bytes(65), 0, 1}}}), Bytes(193));
  EXPECT_EQ(lower_bound({.items = {{Bytes(64), 0, 1}, {Bytes(65), 0, 1}, {Bytes(127), 0, 1}}}), Bytes(64 + 128 + 65));
}

TEST(LowerBound, PaddingOfAnItemThatIsNotAliveAtThePeakDoesNotCount) {
  EXPECT_EQ(lower_bound({.items = {{Bytes(1), 0, 1}, {Bytes(128), 1, 2}, {Bytes(127), 1, 2}}}), Bytes(255));
}

TEST(LowerBound, FollowsTheAlignmentOfTheProblem) {
  EXPECT_EQ(lower_bound({.items = {{Bytes(10), 0, 1}, {Bytes(10), 0, 1}}, .alignment = Bytes(256)}), Bytes(266));
  EXPECT_EQ(lower_bound({.items = {{Bytes(10), 0, 1}, {Bytes(10), 0, 1}}, .alignment = Bytes(1)}), Bytes(20));
}

TEST(CheckProblem, RefusesWhatMakesNoSense) {
  EXPECT_NO_THROW(check_problem({.items = {{Bytes(0), -3, 4}}}));
  EXPECT_THROW(check_problem({.items = {{Bytes(-1), 0, 1}}}), InternalError);
  EXPECT_THROW(check_problem({.items = {{Bytes(1), 3, 3}}}), InternalError);
  EXPECT_THROW(check_problem({.items = {{Bytes(1), 3, 2}}}), InternalError);
  EXPECT_THROW(check_problem({.items = {}, .alignment = Bytes(0)}), InternalError);
}

TEST(CheckProblem, RefusesSizesThatAddUpBeyond64Bits) {
  const Bytes half(std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_NO_THROW(check_problem({.items = {{half - kAlignment, 0, 1}, {half - kAlignment, 0, 1}}}));
  EXPECT_THROW(check_problem({.items = {{half, 0, 1}, {half, 0, 1}, {half, 0, 1}}}), InternalError);
  EXPECT_THROW(check_problem({.items = {{Bytes(std::numeric_limits<std::int64_t>::max()), 0, 1}}}), InternalError);
}

}  // namespace
}  // namespace snug::placement
