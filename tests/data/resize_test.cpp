#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace snug::data {
namespace {

// A picture whose three channels are v, 255 - v and 7.
std::vector<int> resized(int width, int height, const std::vector<int>& values, int side) {
  std::vector<std::byte> target(static_cast<std::size_t>(side * side * 3), std::byte{0xEE});
  Resizer resizer(side, target);
  resizer.begin(width, height);
  std::vector<std::byte> row(static_cast<std::size_t>(width) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int value = values[static_cast<std::size_t>(y * width + x)];
      row[static_cast<std::size_t>(x) * 3] = static_cast<std::byte>(value);
      row[static_cast<std::size_t>(x) * 3 + 1] = static_cast<std::byte>(255 - value);
      row[static_cast<std::size_t>(x) * 3 + 2] = std::byte{7};
    }
    EXPECT_FALSE(resizer.complete());
    resizer.row(row);
  }
  EXPECT_TRUE(resizer.complete());
  std::vector<int> result;
  for (std::size_t i = 0; i < target.size(); i += 3) {
    result.push_back(std::to_integer<int>(target[i]));
    EXPECT_NEAR(std::to_integer<int>(target[i + 1]), 255 - result.back(), 1);
    EXPECT_EQ(target[i + 2], std::byte{7});
  }
  return result;
}

TEST(Resize, SameSizeIsACopy) { EXPECT_EQ(resized(2, 2, {1, 20, 130, 255}, 2), (std::vector<int>{1, 20, 130, 255})); }

TEST(Resize, HalvingAveragesBlocksOfFour) {
  EXPECT_EQ(resized(4, 4, {0, 10, 100, 100, 20, 30, 100, 100, 1, 1, 0, 0, 1, 2, 0, 255}, 2), (std::vector<int>{15, 100, 1, 64}));
}

// Three pixels onto two: each takes one and a half.
TEST(Resize, ShrinkingByAFractionSharesPixels) {
  EXPECT_EQ(resized(3, 2, {0, 90, 240, 0, 90, 240}, 2), (std::vector<int>{30, 190, 30, 190}));
}

TEST(Resize, GrowingInterpolatesBetweenCenters) {
  // Centers of the four lie at -1/4 (held at 0), 1/4, 3/4, 5/4 (held at 1).
  EXPECT_EQ(resized(2, 1, {0, 200}, 4), (std::vector<int>{0, 50, 150, 200, 0, 50, 150, 200, 0, 50, 150, 200, 0, 50, 150, 200}));
  EXPECT_EQ(resized(1, 2, {0, 200}, 4), (std::vector<int>{0, 0, 0, 0, 50, 50, 50, 50, 150, 150, 150, 150, 200, 200, 200, 200}));
}

TEST(Resize, OnePixelFillsTheSquare) { EXPECT_EQ(resized(1, 1, {77}, 3), std::vector<int>(9, 77)); }

TEST(Resize, OneAxisMayGrowWhileTheOtherShrinks) {
  EXPECT_EQ(resized(4, 1, {0, 100, 200, 200}, 2), (std::vector<int>{50, 200, 50, 200}));
  EXPECT_EQ(resized(1, 4, {0, 100, 200, 200}, 2), (std::vector<int>{50, 50, 200, 200}));
}

// Against the definition, in doubles: the average of the source over a target's pixel, or the interpolated value at its center.
double expected_along(const std::vector<double>& source, int j, int to) {
  const int from = static_cast<int>(source.size());
  if (from >= to) {
    const double begin = static_cast<double>(j) * from / to;
    const double end = static_cast<double>(j + 1) * from / to;
    double sum = 0;
    for (int i = 0; i < from; ++i) {
      sum += source[static_cast<std::size_t>(i)] * std::max(0.0, std::min<double>(end, i + 1) - std::max<double>(begin, i));
    }
    return sum / (end - begin);
  }
  const double place = std::min<double>(from - 1, std::max(0.0, (j + 0.5) * from / to - 0.5));
  const int first = std::min(static_cast<int>(place), from - 1);
  const int second = std::min(first + 1, from - 1);
  return source[static_cast<std::size_t>(first)] * (1 - (place - first)) +
         source[static_cast<std::size_t>(second)] * (place - first);
}

TEST(Resize, AgreesWithTheDefinitionForManySizes) {
  for (const auto& [width, height, side] : std::vector<std::tuple<int, int, int>>{
           {5, 7, 3}, {7, 5, 6}, {13, 4, 5}, {3, 17, 8}, {9, 9, 32}, {100, 61, 7}, {31, 33, 32}, {2, 300, 16}}) {
    std::vector<int> values;
    for (int i = 0; i < width * height; ++i) values.push_back((i * 37 + i / width * 11) % 256);
    const std::vector<int> result = resized(width, height, values, side);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        std::vector<double> column;
        for (int row = 0; row < height; ++row) {
          const std::vector<double> line(values.begin() + row * width, values.begin() + (row + 1) * width);
          column.push_back(expected_along(line, x, side));
        }
        EXPECT_NEAR(result[static_cast<std::size_t>(y * side + x)], expected_along(column, y, side), 0.501)
            << width << "x" << height;
      }
    }
  }
}

TEST(Resize, WhiteStaysWhiteAtTheLargestWidths) {
  EXPECT_EQ(resized(30'000, 3, std::vector<int>(90'000, 255), 2), std::vector<int>(4, 255));
}

}  // namespace
}  // namespace snug::data
