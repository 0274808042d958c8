#include "backends/rewiring.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace snug::backends {
namespace {

using Counts = std::vector<std::int64_t>;

Counts shared(std::int64_t total, const Counts& survivors, const Counts& room) {
  Counts growth(room.size());
  share_growth(total, survivors, room, growth);
  return growth;
}

TEST(Growth, IsInProportionToWhatSurvived) {
  EXPECT_EQ(shared(10, {30, 20, 50}, {100, 100, 100}), (Counts{3, 2, 5}));
  // Exactly as many as were pruned, by largest remainders: 3.33, 3.33, 3.33 and the first of equal ones.
  EXPECT_EQ(shared(10, {1, 1, 1}, {100, 100, 100}), (Counts{4, 3, 3}));
  EXPECT_EQ(shared(5, {7, 2, 1}, {100, 100, 100}), (Counts{4, 1, 0}));
}

TEST(Growth, WhatAFullTensorCannotTakeGoesToTheOthers) {
  EXPECT_EQ(shared(10, {80, 10, 10}, {2, 100, 100}), (Counts{2, 4, 4}));
  EXPECT_EQ(shared(10, {80, 10, 10}, {0, 3, 100}), (Counts{0, 3, 7}));
  // One that overflows because another did.
  EXPECT_EQ(shared(9, {60, 30, 10}, {1, 2, 6}), (Counts{1, 2, 6}));
}

TEST(Growth, GoesWhereThereIsRoomWhenNothingSurvived) {
  EXPECT_EQ(shared(6, {0, 0}, {4, 8}), (Counts{2, 4}));
  EXPECT_EQ(shared(6, {5, 0}, {0, 8}), (Counts{0, 6}));
  EXPECT_EQ(shared(0, {5, 3}, {1, 1}), (Counts{0, 0}));
}

TEST(Threshold, FollowsTheTarget) {
  EXPECT_EQ(adapted_threshold(0.5, 89, 100), 1.0);
  EXPECT_EQ(adapted_threshold(0.5, 90, 100), 0.5);
  EXPECT_EQ(adapted_threshold(0.5, 110, 100), 0.5);
  EXPECT_EQ(adapted_threshold(0.5, 111, 100), 0.25);
}

// A store with random values, as a test can look at it.
struct Store {
  ops::SparseGrid grid;
  Counts nonzeros;
  std::int64_t all;
  std::vector<float> values;
  std::vector<std::uint8_t> columns;
  std::vector<std::int32_t> rows;

  Store(Counts tensor_rows, Counts tensor_columns, Counts counts, std::uint64_t seed)
      : grid{.rows = std::move(tensor_rows), .columns = std::move(tensor_columns), .bits = 0}, nonzeros(std::move(counts)) {
    grid.bits = ops::sparse_index_bits(*std::max_element(grid.columns.begin(), grid.columns.end()));
    all = std::accumulate(nonzeros.begin(), nonzeros.end(), std::int64_t{0});
    columns.resize(static_cast<std::size_t>(ops::sparse_columns_type(all, grid.bits).bytes().count()));
    rows.resize(static_cast<std::size_t>(grid.all_rows() + 1));
    draw_pattern(grid, nonzeros, seed, columns, rows.data());
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t k = 0; k < all; ++k) values.push_back(uniform(random));
  }

  Counts counts() const {
    Counts result;
    std::size_t row = 0;
    for (const std::int64_t tensor_rows : grid.rows) {
      const std::size_t end = row + static_cast<std::size_t>(tensor_rows);
      result.push_back(rows[end] - rows[row]);
      row = end;
    }
    return result;
  }

  struct Place {
    std::int64_t row, column;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::vector<Place> places() const {
    std::vector<Place> result;
    for (std::size_t row = 0; row + 1 < rows.size(); ++row) {
      for (std::int64_t k = rows[row]; k < rows[row + 1]; ++k)
        result.push_back({static_cast<std::int64_t>(row), column_at(columns.data(), grid.bits, k)});
    }
    return result;
  }

  void expect_whole() const {
    EXPECT_EQ(rows.front(), 0);
    EXPECT_EQ(rows.back(), all);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    const auto all_places = places();
    ASSERT_EQ(all_places.size(), static_cast<std::size_t>(all));
    EXPECT_TRUE(std::is_sorted(all_places.begin(), all_places.end()));
    EXPECT_EQ(std::adjacent_find(all_places.begin(), all_places.end()), all_places.end());
    std::size_t row = 0;
    for (std::size_t t = 0; t < grid.rows.size(); ++t) {
      for (std::int64_t i = 0; i < grid.rows[t]; ++i, ++row) {
        for (std::int64_t k = rows[row]; k < rows[row + 1]; ++k)
          EXPECT_LT(column_at(columns.data(), grid.bits, k), grid.columns[t]);
      }
    }
  }
};

TEST(Pattern, HasTheAskedNumberInEveryTensorAndNoPlaceTwice) {
  const Store store({5, 16, 3}, {7, 40, 1}, {11, 200, 3}, 4);
  store.expect_whole();
  EXPECT_EQ(store.counts(), (Counts{11, 200, 3}));
  const Store other({5, 16, 3}, {7, 40, 1}, {11, 200, 3}, 5);
  EXPECT_NE(store.places(), other.places());
}

TEST(Pattern, EveryPlaceIsAsLikelyAsAnother) {
  std::vector<int> hits(12, 0);
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Store store({3}, {4}, {5}, seed);
    for (const auto& place : store.places()) ++hits[static_cast<std::size_t>(place.row * 4 + place.column)];
  }
  for (const int count : hits) EXPECT_NEAR(count, 3000.0 * 5 / 12, 6 * 27);  // six standard deviations
}

TEST(Rewiring, KeepsEveryLargeValueAtItsPlaceAndPutsZerosAtNewOnes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Store store({5, 16, 3}, {9, 40, 4}, {20, 200, 6}, seed);
    const Store before = store;
    Rewiring<float> rewiring(store.grid, store.all);
    const std::int64_t pruned = rewiring.prune_below(0.3, store.values.data(), store.columns.data(), store.rows.data());
    rewiring.grow(seed, 7, store.values.data(), store.columns.data(), store.rows.data());
    store.expect_whole();
    std::map<Store::Place, float> kept;
    const auto places = before.places();
    for (std::size_t k = 0; k < places.size(); ++k) {
      if (std::abs(before.values[k]) >= 0.3) kept[places[k]] = before.values[k];
    }
    EXPECT_EQ(pruned, store.all - static_cast<std::int64_t>(kept.size()));
    const auto now = store.places();
    std::int64_t zeros = 0;
    for (std::size_t k = 0; k < now.size(); ++k) {
      const auto found = kept.find(now[k]);
      if (found == kept.end()) {
        EXPECT_EQ(store.values[k], 0);
        ++zeros;
        continue;
      }
      EXPECT_EQ(store.values[k], found->second);
      kept.erase(found);
    }
    EXPECT_TRUE(kept.empty());
    EXPECT_EQ(zeros, pruned);
  }
}

TEST(Rewiring, DependsOnSeedAndStepAlone) {
  const auto rewired = [](std::uint64_t seed, std::uint64_t step) {
    Store store({16}, {40}, {200}, 1);
    Rewiring<float> rewiring(store.grid, store.all);
    rewiring.prune_below(0.3, store.values.data(), store.columns.data(), store.rows.data());
    rewiring.grow(seed, step, store.values.data(), store.columns.data(), store.rows.data());
    return store.places();
  };
  EXPECT_EQ(rewired(3, 8), rewired(3, 8));
  EXPECT_NE(rewired(3, 8), rewired(3, 9));
  EXPECT_NE(rewired(3, 8), rewired(4, 8));
}

TEST(Rewiring, OverflowsFromAFullTensorIntoTheOthers) {
  Store store({2, 16}, {4, 40}, {8, 100}, 3);  // the first is full
  for (std::size_t k = 8; k < store.values.size(); ++k) store.values[k] = 0.001F;
  store.values[8] = 1;
  for (std::size_t k = 0; k < 8; ++k) store.values[k] = 2;
  Rewiring<float> rewiring(store.grid, store.all);
  EXPECT_EQ(rewiring.prune_below(0.5, store.values.data(), store.columns.data(), store.rows.data()), 99);
  rewiring.grow(3, 1, store.values.data(), store.columns.data(), store.rows.data());
  store.expect_whole();
  EXPECT_EQ(store.counts(), (Counts{8, 100}));
}

TEST(Rewiring, EvenOfEverythingIsWhole) {
  Store store({5, 16, 3}, {9, 40, 4}, {20, 200, 6}, 8);
  Rewiring<float> rewiring(store.grid, store.all);
  EXPECT_EQ(rewiring.prune_below(10, store.values.data(), store.columns.data(), store.rows.data()), store.all);
  rewiring.grow(3, 1, store.values.data(), store.columns.data(), store.rows.data());
  store.expect_whole();
}

TEST(RewiringByTensor, MovesTheSmallestOfEachAndKeepsItsCount) {
  Store store({5, 16, 3}, {9, 40, 4}, {20, 200, 6}, 8);
  const Store before = store;
  Rewiring<float> rewiring(store.grid, store.all);
  const std::int64_t pruned = rewiring.prune_smallest(113, store.values.data(), store.columns.data(), store.rows.data());
  EXPECT_EQ(pruned, 10 + 100 + 3);
  rewiring.grow(3, 1, store.values.data(), store.columns.data(), store.rows.data());
  store.expect_whole();
  EXPECT_EQ(store.counts(), before.counts());
  // Of the first tensor the larger half is there, and nothing else but zeros.
  std::vector<float> sizes(before.values.begin(), before.values.begin() + 20);
  for (float& value : sizes) value = std::abs(value);
  std::sort(sizes.begin(), sizes.end());
  std::multiset<float> expected(sizes.begin() + 10, sizes.end());
  for (int i = 0; i < 10; ++i) expected.insert(0.0F);
  std::multiset<float> got;
  for (std::size_t k = 0; k < 20; ++k) got.insert(std::abs(store.values[k]));
  EXPECT_EQ(got, expected);
}

TEST(RewiringByTensor, TakesNoMoreThanItsShareOfEqualValues) {
  Store store({4}, {10}, {20}, 8);
  std::ranges::fill(store.values, 0.5F);
  Rewiring<float> rewiring(store.grid, store.all);
  EXPECT_EQ(rewiring.prune_smallest(7, store.values.data(), store.columns.data(), store.rows.data()), 7);
  rewiring.grow(3, 1, store.values.data(), store.columns.data(), store.rows.data());
  store.expect_whole();
  EXPECT_EQ(std::ranges::count(store.values, 0.0F), 7);
}

}  // namespace
}  // namespace snug::backends
