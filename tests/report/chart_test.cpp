#include "report/chart.h"

#include <array>

#include <gtest/gtest.h>

namespace snug::report {
namespace {

using Strings = std::vector<std::string>;
using Doubles = std::vector<double>;

TEST(Chart, BarsCountEighthsOfAColumn) {
  EXPECT_EQ(draw_bar(0, 4), "");
  EXPECT_EQ(draw_bar(1, 4), "████");
  EXPECT_EQ(draw_bar(0.5, 4), "██");
  EXPECT_EQ(draw_bar(0.53125, 4), "██▏");
  EXPECT_EQ(draw_bar(0.001, 4), "");
}

TEST(Chart, BarsStayInsideTheirWidth) {
  EXPECT_EQ(draw_bar(1.5, 3), "███");
  EXPECT_EQ(draw_bar(-1, 3), "");
}

TEST(Chart, AColumnShowsTheLargestOfItsValues) {
  const Doubles values{1, 9, 2, 3, 8, 4};
  EXPECT_EQ(to_columns(values, 3), (Doubles{9, 3, 8}));
  EXPECT_EQ(to_columns(values, 1), (Doubles{9}));
}

TEST(Chart, FewerValuesThanColumnsAreRepeated) {
  EXPECT_EQ(to_columns(Doubles{1, 2}, 5), (Doubles{1, 1, 1, 2, 2}));
  EXPECT_EQ(to_columns(Doubles{}, 5), Doubles{});
}

TEST(Chart, AreaRisesByEighthsOfARow) {
  EXPECT_EQ(draw_area(Doubles{0, 0.25, 0.5, 0.8125, 1}, 0, 2), (Strings{"   ▅█", " ▄███"}));
}

TEST(Chart, WhatIsBelowTheFloorIsShaded) { EXPECT_EQ(draw_area(Doubles{0.5, 1}, 0.5, 4), (Strings{" █", " █", "░░", "░░"})); }

TEST(Chart, AxisNamesItsStretches) {
  EXPECT_EQ(draw_axis(std::array<Stretch, 2>{{{"forward", 12}, {"update", 22}}}), "└─ forward ─┴─ update ┘");
}

TEST(Chart, AStretchTooNarrowForItsNameGoesWithout) {
  EXPECT_EQ(draw_axis(std::array<Stretch, 3>{{{"forward", 12}, {"backward", 15}, {"update", 16}}}), "└─ forward ─┴──┴┘");
}

TEST(Chart, MarkTurnsItsLabelWhereTheRoomEnds) {
  EXPECT_EQ(draw_mark(2, "here", 20), "  ▲ here");
  EXPECT_EQ(draw_mark(18, "here", 20), "             here ▲");
  EXPECT_EQ(columns_of(draw_mark(18, "here", 20)), 19);
}

TEST(Chart, ColumnsAreCharactersNotBytes) { EXPECT_EQ(columns_of("a█░b"), 4); }

}  // namespace
}  // namespace snug::report
