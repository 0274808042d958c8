#include "ops/updates/block_code.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "infer.h"
#include "support/messages.h"

namespace snug::ops {
namespace {

TEST(BlockCode, RisesFromMinusOneOrZeroToOne) {
  for (const BlockCode& code : {kSignedCode, kUnsignedCode}) {
    EXPECT_TRUE(std::is_sorted(std::begin(code.values), std::end(code.values)));
    EXPECT_EQ(std::adjacent_find(std::begin(code.values), std::end(code.values)), std::end(code.values));
    EXPECT_EQ(code.values[code.zero], 0.0F);
    EXPECT_EQ(code.values[255], 1.0F);
  }
  EXPECT_NEAR(kSignedCode.values[0], -0.993, 0.001);
  EXPECT_EQ(kUnsignedCode.values[0], 0.0F);
  EXPECT_NEAR(kSignedCode.values[kSignedCode.zero + 1], 0.55e-6, 1e-9);  // a lone number in the lowest decade
  EXPECT_NEAR(kUnsignedCode.values[1], 0.325e-6, 1e-9);                  // the first of two
}

TEST(BlockCode, EveryNumberIsItsOwnNearestAndAClearedByteIsZero) {
  for (const BlockCode& code : {kSignedCode, kUnsignedCode}) {
    for (int number = 0; number < 256; ++number) {
      EXPECT_EQ(nearest_number(code, code.values[number]), number);
      EXPECT_EQ(number_of(code, byte_of(code, number)), number);
      const std::uint8_t byte = byte_of(code, number);
      EXPECT_EQ(encoded(code, decoded(code, byte, 8), 8), byte);
    }
    EXPECT_EQ(decoded(code, 0, 3), 0.0F);
    EXPECT_EQ(encoded(code, 0, 0), 0) << "in a block of nothing";
    EXPECT_EQ(nearest_number(code, std::numeric_limits<float>::quiet_NaN()), 0);
  }
}

TEST(BlockCode, IsNearestAndKeepsSmallNumbersApart) {
  for (const BlockCode& code : {kSignedCode, kUnsignedCode}) {
    for (int i = code.zero == 0 ? 0 : -2000; i <= 2000; ++i) {
      const float share = static_cast<float>(i) / 2000;
      const float found = code.values[nearest_number(code, share)];
      for (const float other : code.values) ASSERT_LE(std::abs(found - share), std::abs(other - share) + 1e-7F) << share;
    }
  }
  // A thousandth of the largest element would be nothing to an even code of 8 bits.
  for (const float share : {1e-3F, 4e-3F, -2e-2F, 0.3F}) {
    const float found = kSignedCode.values[nearest_number(kSignedCode, share)];
    EXPECT_NEAR(found / share, 1, 0.15) << share;
  }
}

// There and back again: half the distance of neighbors, which in every decade is 0.9 of it over as many numbers as it has.
TEST(BlockCode, ErrsByAtMostHalfTheDistanceOfNeighborsInEachDecade) {
  const float largest = 0.37F;
  for (const BlockCode& code : {kSignedCode, kUnsignedCode}) {
    for (int exponent = 0; exponent < 7; ++exponent) {
      const double decade = std::pow(10.0, exponent - 6);  // numbers from a tenth of it to all of it
      const double numbers = code.zero == 0 ? 2 << exponent : 1 << exponent;
      for (int i = 0; i <= 1000; ++i) {
        const double share = decade * (0.1 + 0.9 * i / 1000);
        const auto value = static_cast<float>(share) * largest;
        const auto error = [&](float number) {
          return std::abs(static_cast<double>(decoded(code, encoded(code, number, largest), largest)) -
                          static_cast<double>(number));
        };
        const double worst = code.zero == 0 ? error(value) : std::max(error(value), error(-value));
        const double distance = 0.9 * decade / numbers * largest;
        // A decade's outer numbers lie half a distance inside; those of the next are further apart.
        ASSERT_LE(worst, 1.001 * distance) << share;
        if (i > 500 / numbers && i < 1000 - 500 / numbers) {
          ASSERT_LE(worst, 1.001 * distance / 2) << share;
        }
      }
    }
  }
}

TEST(BlockCode, WithoutASignNothingAboveZeroIsStoredAsZero) {
  for (const float share : {1e-7F, 1e-20F, std::numeric_limits<float>::denorm_min()}) {
    EXPECT_EQ(nearest_number(kUnsignedCode, share), 1) << share;
    EXPECT_EQ(nearest_number(kSignedCode, share), kSignedCode.zero) << share;
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

TEST(InferAdamwQuantized, CodesAndPairsOfScalesFollowTheWeight) {
  const std::string rule = "beta1=0.9, beta2=0.99, epsilon=0.1, weight_decay=0.1";
  const auto infer = [&](const std::string& second, const std::string& scales) {
    return testing::infer("adamw_quantized", {"f32[20x30]", "f32[20x30]", "u8[64]", "u8[600]", second, scales, "f64[1]"}, rule);
  };
  EXPECT_EQ(infer("u8[600]", "f32[3x2]"), "f32[20x30] f32[20x30] u8[600] u8[600] f32[3x2]");
  EXPECT_TRUE(support::mentions(infer("u8[599]", "f32[3x2]"), {"adamw_quantized", "second", "u8[599]", "u8[600]"}));
  EXPECT_TRUE(support::mentions(infer("u8[600]", "f32[3]"), {"adamw_quantized", "scales", "f32[3]", "f32[3x2]"}));
}

}  // namespace
}  // namespace snug::ops
