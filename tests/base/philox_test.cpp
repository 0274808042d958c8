#include "base/philox.h"

#include <array>
#include <limits>

#include <gtest/gtest.h>

namespace snug {
namespace {

struct KnownAnswer {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> words;
};

// philox4x32 with 10 rounds in the known-answer file of Random123, the generator's reference implementation.
constexpr std::array<KnownAnswer, 3> kKnownAnswers{{{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                                                    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                                                     {0xffffffff, 0xffffffff},
                                                     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                                                    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                                     {0xa4093822, 0x299f31d0},
                                                     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};

constexpr std::uint64_t join(std::uint32_t low, std::uint32_t high) { return low | (static_cast<std::uint64_t>(high) << 32U); }

TEST(Philox, GivesTheKnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const PhiloxBlock block = philox(join(known.key[0], known.key[1]), join(known.counter[0], known.counter[1]),
                                     join(known.counter[2], known.counter[3]));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], known.words[i]) << "word " << i;
  }
}

TEST(Philox, IsKnownAtCompileTime) {
  static_assert(philox(0, 0, 0).word[0] == 0x6627e8d5U);
  static_assert(philox(0, 1, 0).word[0] != philox(0, 0, 0).word[0]);
}

TEST(UniformUnit, CoversZeroToBelowOne) {
  EXPECT_EQ(uniform_unit(0), 0.0);
  EXPECT_EQ(uniform_unit(1U << 31U), 0.5);
  EXPECT_LT(uniform_unit(std::numeric_limits<std::uint32_t>::max()), 1.0);
}

TEST(UniformBelow, StaysBelowItsBoundAndReachesBothEnds) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t bound : {1U, 2U, 9U, 1000U, kMost}) {
    EXPECT_EQ(uniform_below(0, bound), 0U);
    EXPECT_EQ(uniform_below(kMost, bound), bound - 1);
  }
}

}  // namespace
}  // namespace snug
