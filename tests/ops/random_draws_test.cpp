#include "ops/random_draws.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace snug::ops {
namespace {

constexpr std::uint64_t kSeed = 42;
constexpr int kDraws = 100'000;

TEST(RandomDraws, OfDifferentPurposesShareNoCounter) {
  // The ends of every range: what lies between them is between no others.
  const std::pair<std::uint64_t, std::int64_t> ranges[] = {{kDropoutPurpose, kMostDropoutKey},
                                                           {kPackPurpose, kMostPackKey},
                                                           {kRoundingPurpose, kMostRoundingKey},
                                                           {kRewirePurpose, 0},
                                                           {kPatternPurpose, 0},
                                                           {kInitPurpose, 0},
                                                           {kImagePurpose, 0}};
  std::vector<std::uint64_t> ends;
  for (const auto& [purpose, most_key] : ranges) {
    ends.push_back(purpose);
    ends.push_back(purpose + static_cast<std::uint64_t>(most_key));
  }
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  std::set<std::uint64_t> counters;
  for (const std::uint64_t purpose : std::set(ends.begin(), ends.end())) {
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 40U) - 1}) {
      EXPECT_TRUE(counters.insert(counter_high(purpose, step)).second);
    }
  }
}

TEST(Dropout, DropsItsShareAndEveryStepAnother) {
  int kept = 0;
  int same = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const bool now = dropout_keeps(dropout_word(kSeed, 0, 1, i), 0.3);
    kept += now ? 1 : 0;
    same += now == dropout_keeps(dropout_word(kSeed, 1, 1, i), 0.3) ? 1 : 0;
  }
  EXPECT_NEAR(kept, 0.7 * kDraws, 5 * std::sqrt(0.21 * kDraws));
  EXPECT_NEAR(same, 0.58 * kDraws, 5 * std::sqrt(0.25 * kDraws));  // 0.7^2 + 0.3^2: independent
}

TEST(Dropout, OfProbabilityZeroKeepsEverything) {
  EXPECT_TRUE(dropout_keeps(0, 0.0));
  EXPECT_TRUE(dropout_keeps(~0U, 0.0));
}

TEST(Augmentation, ReachesEveryShiftAndFlipsHalf) {
  std::set<std::int64_t> shifts;
  int flips = 0;
  for (std::uint64_t example = 0; example < kDraws; ++example) {
    const ImageAugmentation a = draw_image_augmentation(kSeed, 3, example, 4);
    shifts.insert(a.dy);
    shifts.insert(a.dx);
    flips += a.flip ? 1 : 0;
  }
  EXPECT_EQ(shifts, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_NEAR(flips, 0.5 * kDraws, 5 * std::sqrt(0.25 * kDraws));
  EXPECT_EQ(draw_image_augmentation(kSeed, 3, 0, 0).dy, 0);
}

TEST(InitUniform, StaysInsideItsBoundInSinglePrecisionToo) {
  double sum = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double value = draw_init_uniform(kSeed, 5, i);
    ASSERT_GE(value, -1.0);
    ASSERT_LT(static_cast<float>(value), 1.0F);
    ASSERT_EQ(static_cast<double>(static_cast<float>(value)), value);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(1.0 / 3 / kDraws));
}

TEST(InitNormal, HasMeanZeroAndVarianceOne) {
  double sum = 0;
  double squares = 0;
  double neighbors = 0;
  for (std::uint64_t i = 0; i < kDraws; i += 2) {
    const double a = draw_init_normal(kSeed, 6, i);
    const double b = draw_init_normal(kSeed, 6, i + 1);
    sum += a + b;
    squares += a * a + b * b;
    neighbors += a * b;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(neighbors / (kDraws / 2), 0, 5 * std::sqrt(2.0 / kDraws));
}

}  // namespace
}  // namespace snug::ops
