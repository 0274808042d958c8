#include "ops/updates/quantized_momentum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "infer.h"
#include "support/messages.h"

namespace snug::ops {
namespace {

TEST(MomentumCode, RisesFromMinusOneToOneThroughZero) {
  EXPECT_TRUE(std::is_sorted(kMomentumValues.begin(), kMomentumValues.end()));
  EXPECT_EQ(std::adjacent_find(kMomentumValues.begin(), kMomentumValues.end()), kMomentumValues.end());
  EXPECT_EQ(kMomentumValues[kZeroMomentum], 0.0F);
  EXPECT_EQ(kMomentumValues[255], 1.0F);
  EXPECT_NEAR(kMomentumValues[0], -0.993, 0.001);
  EXPECT_NEAR(kMomentumValues[kZeroMomentum + 1], 0.55e-6, 1e-9);  // a lone number in the lowest decade
}

TEST(MomentumCode, EveryNumberIsItsOwnNearestAndAClearedByteIsZero) {
  for (int number = 0; number < 256; ++number) {
    EXPECT_EQ(nearest_momentum(kMomentumValues[static_cast<std::size_t>(number)]), number);
    EXPECT_EQ(momentum_number(momentum_code(number)), number);
  }
  EXPECT_EQ(kMomentumValues[static_cast<std::size_t>(momentum_number(0))], 0.0F);
  EXPECT_EQ(nearest_momentum(std::numeric_limits<float>::quiet_NaN()), 0);
}

TEST(MomentumCode, IsNearestAndKeepsSmallNumbersApart) {
  for (int i = -2000; i <= 2000; ++i) {
    const float share = static_cast<float>(i) / 2000;
    const float found = kMomentumValues[static_cast<std::size_t>(nearest_momentum(share))];
    for (const float other : kMomentumValues) ASSERT_LE(std::abs(found - share), std::abs(other - share) + 1e-7F) << share;
  }
  // A thousandth of the largest element would be nothing to an even code of 8 bits.
  for (const float share : {1e-3F, 4e-3F, -2e-2F, 0.3F}) {
    const float found = kMomentumValues[static_cast<std::size_t>(nearest_momentum(share))];
    EXPECT_NEAR(found / share, 1, 0.15) << share;
  }
}

TEST(InferSgdQuantized, CodesAndScalesFollowTheWeight) {
  const std::string rule = "momentum=0.9, nesterov=1, weight_decay=0.1";
  EXPECT_EQ(testing::infer("sgd_quantised", {"f32[20x30]", "f32[20x30]", "u8[64]", "u8[600]", "f32[3]"}, rule),
            "f32[20x30] f32[20x30] u8[600] f32[3]");
  EXPECT_TRUE(
      support::mentions(testing::infer("sgd_quantised", {"f32[20x30]", "f32[20x30]", "u8[64]", "u8[600]", "f32[2]"}, rule),
                        {"sgd_quantised", "input", "4", "f32[2]", "f32[3]"}));
  EXPECT_EQ(testing::infer("sgd_quantised", {"f32[6]", "f32[6]", "u8[64]", "u8[6]", "f32[1]"},
                           "momentum=0.0, nesterov=0, weight_decay=0.1"),
            "sgd_quantised: momentum 0 is not in (0, 1)");
}

}  // namespace
}  // namespace snug::ops
