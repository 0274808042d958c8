#include "data/permutation.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace snug::data {
namespace {

TEST(Permutation, EveryIndexComesExactlyOnce) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 31U, 33U, 100U, 1000U, 1023U, 1025U, 50'000U}) {
    const Permutation order(17, 3, size);
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t index = order(i);
      ASSERT_LT(index, size);
      ASSERT_FALSE(seen[index]) << size;
      seen[index] = true;
    }
  }
}

TEST(Permutation, IsTheSameForTheSameSeedAndEpochAndAnotherOtherwise) {
  const std::uint64_t size = 1000;
  const Permutation order(1, 2, size);
  const Permutation same(1, 2, size);
  const Permutation other_epoch(1, 3, size);
  const Permutation other_seed(2, 2, size);
  int equal_epoch = 0;
  int equal_seed = 0;
  int in_place = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    EXPECT_EQ(order(i), same(i));
    equal_epoch += order(i) == other_epoch(i);
    equal_seed += order(i) == other_seed(i);
    in_place += order(i) == i;
  }
  // Of two random permutations one place agrees on average; ten would be a wonder.
  EXPECT_LT(equal_epoch, 10);
  EXPECT_LT(equal_seed, 10);
  EXPECT_LT(in_place, 10);
}

// Over many epochs every example comes equally often at every place: chi-squared over 20 x 20 cells, 361 degrees of freedom.
TEST(Permutation, PlacesAreUniformOverEpochs) {
  constexpr std::uint64_t kSize = 20;
  constexpr int kEpochs = 20'000;
  std::vector<int> count(kSize * kSize);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation order(5, static_cast<std::uint64_t>(epoch), kSize);
    for (std::uint64_t i = 0; i < kSize; ++i) ++count[i * kSize + order(i)];
  }
  const double expected = double{kEpochs} / kSize;
  double chi_squared = 0;
  for (const int n : count) chi_squared += (n - expected) * (n - expected) / expected;
  EXPECT_LT(std::fabs(chi_squared - 361), 4 * std::sqrt(2.0 * 361));
}

// A neighbor must not follow its neighbor more often than by chance, in large orders too.
TEST(Permutation, NeighborsArePartedInLargeOrders) {
  const std::uint64_t size = 50'000;
  const Permutation order(9, 0, size);
  int near = 0;
  double sum_of_distances = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const double distance = std::fabs(static_cast<double>(order(i)) - static_cast<double>(order(i + 1)));
    near += distance <= 5;
    sum_of_distances += distance;
  }
  EXPECT_NEAR(near, 10, 15);  // 2 * 5 / size of each
  EXPECT_NEAR(sum_of_distances / static_cast<double>(size), static_cast<double>(size) / 3, 0.02 * static_cast<double>(size));
}

TEST(Permutation, HoldsForSizesThatNoArrayCould) {
  const std::uint64_t size = (std::uint64_t{1} << 40U) + 1;
  const Permutation order(1, 0, size);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_LT(order(size - 1 - i), size);
}

// A resumed run must see the order that it was begun with, in later versions too. The numbers come from a second implementation,
// in Python.
TEST(Permutation, NeverChanges) {
  const auto first_of = [](std::uint64_t size, std::uint64_t count) {
    const Permutation order(42, 7, size);
    std::vector<std::uint64_t> indices;
    for (std::uint64_t i = 0; i < count; ++i) indices.push_back(order(i));
    return indices;
  };
  EXPECT_EQ(first_of(10, 10), (std::vector<std::uint64_t>{7, 1, 8, 6, 9, 3, 4, 2, 5, 0}));
  EXPECT_EQ(first_of(50'000, 4), (std::vector<std::uint64_t>{46618, 32943, 35287, 46363}));
}

}  // namespace
}  // namespace snug::data
