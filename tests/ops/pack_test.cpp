// What packing promises: the right value on average, less than a step away, and the same draws wherever they are made.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "infer.h"
#include "ops/packing.h"
#include "support/messages.h"

namespace snug::ops {
namespace {

using testing::infer;

TEST(InferPack, FewBitsAnElementAndARangeForEvery256) {
  EXPECT_EQ(infer("pack", {"f32[3x5x7x4]/channels_last", "u8[64]"}, "bits=4, key=0"), "u8[210] f32[2x2]");
  EXPECT_EQ(infer("pack", {"f16[3x5x7x3]", "u8[64]"}, "bits=2, key=7"), "u8[79] f32[2x2]");
  EXPECT_EQ(infer("pack", {"f64[256]", "u8[64]"}, "bits=8, key=7"), "u8[256] f32[1x2]");
  EXPECT_EQ(infer("unpack", {"u8[210]", "f32[2x2]"}, "bits=4, dtype=1, channels_last=1, input_shape=[3,5,7,4]"),
            "f32[3x5x7x4]/channels_last");
  EXPECT_EQ(infer("unpack", {"u8[79]", "f32[2x2]"}, "bits=2, dtype=3, channels_last=0, input_shape=[3,5,7,3]"), "bf16[3x5x7x3]");
}

TEST(InferPack, Refusals) {
  EXPECT_TRUE(support::mentions(infer("pack", {"f32[8]", "u8[64]"}, "bits=3, key=0"), {"pack", "3", "element", "2", "4", "8"}));
  EXPECT_TRUE(support::mentions(infer("pack", {"u8[8]", "u8[64]"}, "bits=4, key=0"), {"pack", "u8[8]", "real"}));
  EXPECT_EQ(infer("pack", {"f32[8]", "u8[64]"}, "bits=4, key=-1"), "pack: the key -1 is not in 0 to 4194303");
  EXPECT_EQ(infer("unpack", {"u8[4]", "f32[2x2]"}, "bits=4, dtype=1, channels_last=0, input_shape=[8]"),
            "unpack: f32[8] in 4 bits has operand 1 as f32[1x2], not f32[2x2]");
  EXPECT_TRUE(support::mentions(infer("unpack", {"u8[4]", "f32[1x2]"}, "bits=4, dtype=5, channels_last=0, input_shape=[8]"),
                                {"unpack", "dtype", "5"}));
}

float round_trip(float value, const PackRange& range, std::uint32_t levels, std::uint32_t random) {
  return unpack_code(pack_code(value, range, pack_inverse(range), levels, random), range);
}

TEST(PackArithmetic, EveryChanceTogetherGivesTheValueAndNoneIsAStepAway) {
  for (const std::int64_t bits : {2, 4, 8}) {
    const std::uint32_t levels = pack_levels(bits);
    const PackRange range = pack_range(-1.5F, 2.25F, false, levels);
    for (const float value : {-1.5F, -1.4999F, -0.3F, 0.0F, 0.7F, 1.99F, 2.2499F, 2.25F}) {
      double sum = 0;
      for (std::uint32_t random = 0; random < 65536; ++random) {
        const float back = round_trip(value, range, levels, random);
        ASSERT_LT(std::abs(back - value), range.step * 1.00001) << value;
        sum += back;
      }
      EXPECT_NEAR(sum / 65536, value, 1e-5 * range.step + 1e-6) << value << " in " << bits << " bits";
    }
  }
}

TEST(PackArithmetic, TheLeastOfAGroupComesBackToTheBit) {
  const PackRange range = pack_range(0, 3.1F, false, 15);
  for (std::uint32_t random = 0; random < 65536; ++random) ASSERT_EQ(round_trip(0, range, 15, random), 0.0F);
}

TEST(PackArithmetic, WhatIsNotFiniteComesBackAsNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(round_trip(1, pack_range(0, 1, true, 15), 15, 9)));
  EXPECT_TRUE(std::isnan(round_trip(1, pack_range(0, infinity, false, 15), 15, 9)));
  EXPECT_TRUE(std::isnan(round_trip(1, pack_range(-3e38F, 3e38F, false, 15), 15, 9)));
}

TEST(PackArithmetic, CodesOfAGroupLieSideBySide) {
  for (const std::int64_t bits : {2, 4, 8}) {
    for (const std::int64_t elements : {1, 5, 77, 255, 256}) {
      std::set<std::int64_t> places;
      for (std::int64_t i = 0; i < elements; ++i) {
        const PackPlace place = pack_place(i, elements, bits);
        EXPECT_LT(place.byte, pack_bytes(elements, bits));
        EXPECT_LE(place.shift + bits, 8U);
        EXPECT_TRUE(places.insert(place.byte * 8 + place.shift).second);
      }
    }
  }
}

TEST(PackDraws, OfTwoMicrobatchesNeverMeet) {
  // 300 elements an example are two groups: the second microbatch begins behind all groups of the first.
  const std::int64_t last = pack_groups(10 * 300) - 1;
  EXPECT_LT(pack_first_block(0, 300, last) + 31, pack_first_block(10, 300, 0));
  EXPECT_NE(pack_counter_high(0, 5), pack_counter_high(1, 5));
  EXPECT_NE(pack_counter_high(0, 5), counter_high(0, 5));  // a dropout's
}

}  // namespace
}  // namespace snug::ops
