#include "placement/occupancy.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "random_problem.h"

namespace snug::placement {
namespace {

TEST(AddressSet, FindsTheLowestHoleThatIsLargeEnough) {
  AddressSet set;
  set.add(Bytes(10), Bytes(20));
  set.add(Bytes(25), Bytes(30));
  set.add(Bytes(50), Bytes(60));
  EXPECT_EQ(set.lowest_free(Bytes(0), Bytes(10)), Bytes(0));
  EXPECT_EQ(set.lowest_free(Bytes(0), Bytes(11)), Bytes(30));
  EXPECT_EQ(set.lowest_free(Bytes(1), Bytes(10)), Bytes(30));
  EXPECT_EQ(set.lowest_free(Bytes(12), Bytes(5)), Bytes(20));
  EXPECT_EQ(set.lowest_free(Bytes(12), Bytes(21)), Bytes(60));
  EXPECT_EQ(set.lowest_free(Bytes(70), Bytes(21)), Bytes(70));
}

TEST(AddressSet, RangesThatTouchOrOverlapBecomeOne) {
  AddressSet set;
  set.add(Bytes(0), Bytes(10));
  set.add(Bytes(20), Bytes(30));
  set.add(Bytes(40), Bytes(50));
  set.add(Bytes(10), Bytes(45));
  EXPECT_EQ(set.lowest_free(Bytes(0), Bytes(1)), Bytes(50));
}

TEST(Occupancy, SeesOnlyWhatIsTakenDuringTheSpan) {
  Occupancy occupancy(8);
  occupancy.take({0, 4}, Bytes(0), Bytes(10));
  occupancy.take({2, 8}, Bytes(20), Bytes(30));
  EXPECT_EQ(occupancy.lowest_free({0, 2}, Bytes(100)), Bytes(10));
  EXPECT_EQ(occupancy.lowest_free({2, 4}, Bytes(10)), Bytes(10));
  EXPECT_EQ(occupancy.lowest_free({2, 4}, Bytes(11)), Bytes(30));
  EXPECT_EQ(occupancy.lowest_free({4, 8}, Bytes(20)), Bytes(0));
  EXPECT_EQ(occupancy.lowest_free({0, 8}, Bytes(10)), Bytes(10));
}

TEST(Occupancy, AgreesWithLookingAtEveryItem) {
  struct Taken {
    Span span;
    Bytes begin;
    Bytes end;
  };
  Random random(3);
  for (int repetition = 0; repetition < 40; ++repetition) {
    const auto moments = static_cast<std::int32_t>(random.between(1, 40));
    Occupancy occupancy(moments);
    std::vector<Taken> all;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<std::int32_t>(random.between(0, moments - 1));
      const Span span{begin, static_cast<std::int32_t>(random.between(begin + 1, moments))};
      const Bytes size(random.between(1, 12));
      // The lowest free offset is 0 or the end of something.
      std::vector<Bytes> candidates{Bytes(0)};
      for (const Taken& taken : all) candidates.push_back(taken.end);
      std::ranges::sort(candidates);
      const auto lowest = std::ranges::find_if(candidates, [&](Bytes offset) {
        return std::ranges::none_of(all, [&](const Taken& taken) {
          return taken.span.overlaps(span) && taken.begin < offset + size && offset < taken.end;
        });
      });
      ASSERT_EQ(occupancy.lowest_free(span, size), *lowest);
      // Sometimes higher than need be, to leave holes.
      const Bytes at = *lowest + Bytes(random.between(0, 3) == 0 ? 1000 + 20 * i : 0);
      occupancy.take(span, at, at + size);
      all.push_back({span, at, at + size});
    }
  }
}

}  // namespace
}  // namespace snug::placement
