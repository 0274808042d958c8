#include "ops/sequence/rotary_angles.h"

#include <limits>

#include <gtest/gtest.h>

namespace snug::ops {
namespace {

std::vector<float> frequencies(std::int64_t head_size, double base, std::int64_t inverse = 0) {
  return rotary_frequencies({{"head_size", head_size}, {"base", base}, {"inverse", inverse}});
}

// By PyTorch on a CPU: 1.0 / (base ** (torch.arange(0, head_size, 2).float() / head_size)).
TEST(RotaryAngles, FrequenciesAreThoseOfTransformers) {
  const std::vector<float> small = frequencies(64, 10000);
  ASSERT_EQ(small.size(), 32U);
  EXPECT_EQ(small[0], 1);
  EXPECT_EQ(small[1], 0x1.7ff222p-1F);
  EXPECT_EQ(small[2], 0x1.1feb34p-1F);
  EXPECT_EQ(small[9], 0x1.33281ap-4F);
  EXPECT_EQ(small[31], 0x1.17a8e4p-13F);
  const std::vector<float> large = frequencies(128, 500000);
  ASSERT_EQ(large.size(), 64U);
  EXPECT_EQ(large[1], 0x1.a11582p-1F);
  EXPECT_EQ(large[31], 0x1.c7182p-10F);
  EXPECT_EQ(large[63], 0x1.4985fep-19F);
}

TEST(RotaryAngles, AreNegativeWhereTheOpTurnsBack) {
  const std::vector<float> forward = frequencies(16, 100), back = frequencies(16, 100, 1);
  for (std::size_t i = 0; i < forward.size(); ++i) EXPECT_EQ(back[i], -forward[i]) << i;
}

TEST(RotaryAngles, ThePositionAndItsProductAreRoundedToSinglePrecision) {
  EXPECT_EQ(rotary_angle(1001, 0x1.7ff222p-1F), static_cast<float>(1001 * double{0x1.7ff222p-1F}));
  EXPECT_EQ(rotary_angle(16'777'217, 1), 0x1p24F);
  EXPECT_EQ(rotary_angle(std::numeric_limits<std::int32_t>::max(), -1), -0x1p31F);
  EXPECT_EQ(rotary_angle(std::numeric_limits<std::int32_t>::min(), 1), -0x1p31F);
}

}  // namespace
}  // namespace snug::ops
