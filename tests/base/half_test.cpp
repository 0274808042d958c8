#include "base/half.h"

#include <limits>

#include <gtest/gtest.h>

namespace snug {
namespace {

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float value = float_from_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_from_half(half_from_double(value)))) << bits;
    } else {
      ASSERT_EQ(half_from_double(value), bits) << value;
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(half_from_double(1.0), 0x3C00);
  EXPECT_EQ(half_from_double(-2.0), 0xC000);
  EXPECT_EQ(half_from_double(65504.0), 0x7BFF);
  EXPECT_EQ(half_from_double(0x1p-14), 0x0400);
  EXPECT_EQ(half_from_double(0x1p-24), 0x0001);
  EXPECT_EQ(half_from_double(std::numeric_limits<double>::infinity()), 0x7C00);
  EXPECT_EQ(float_from_half(0x3555), 0.333251953125F);
}

// Between any two neighbors the value goes to the nearer, and from the middle to the even one.
TEST(Half, RoundsToNearestEven) {
  for (unsigned bits = 0; bits < 0x7BFFU; ++bits) {
    const double below = float_from_half(static_cast<std::uint16_t>(bits));
    const double above = float_from_half(static_cast<std::uint16_t>(bits + 1));
    const double middle = (below + above) / 2;
    ASSERT_EQ(half_from_double(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(half_from_double(std::nextafter(middle, 0.0)), bits);
    ASSERT_EQ(half_from_double(std::nextafter(middle, 1e9)), bits + 1);
  }
}

// Every half, the middle to the next one, and the floats beside these: all places where rounding turns over.
TEST(Half, AFloatIsRoundedAsItsDoubleIs) {
  const auto compare = [](float value) {
    for (const float signed_value : {value, -value})
      ASSERT_EQ(half_from_float(signed_value), half_from_double(signed_value)) << signed_value;
  };
  for (std::uint32_t bits = 0; bits < 0x7C00U; ++bits) {
    const float half = float_from_half(static_cast<std::uint16_t>(bits));
    const float next = bits + 1 == 0x7C00U ? 65536.0F : float_from_half(static_cast<std::uint16_t>(bits + 1));
    for (const float value : {half, (half + next) / 2}) {
      compare(value);
      compare(std::nextafter(value, 0.0F));
      compare(std::nextafter(value, 1e9F));
    }
  }
  for (const float value : {1e-45F, 1e-30F, 65536.0F, 1e30F, INFINITY, NAN}) compare(value);
}

TEST(Half, TooLargeBecomesInfinite) {
  EXPECT_EQ(half_from_double(65519.99), 0x7BFF);
  EXPECT_EQ(half_from_double(65520.0), 0x7C00);
  EXPECT_EQ(half_from_double(-1e300), 0xFC00);
}

}  // namespace
}  // namespace snug
