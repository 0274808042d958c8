#include "train/sampling.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug::train {
namespace {

constexpr std::array<double, 4> kScores{1.0, 3.0, 2.0, 3.0};
constexpr int kDraws = 20'000;

std::array<double, 4> shares(const Sampling& sampling) {
  Sampler sampler(sampling);
  std::array<double, 4> shares{};
  for (std::uint64_t position = 0; position < kDraws; ++position)
    shares[static_cast<std::size_t>(sampler.sample(kScores, position))] += 1.0 / kDraws;
  return shares;
}

TEST(Sampler, WithoutTemperatureTheFirstOfTheLikeliestIsTaken) {
  Sampler sampler({.temperature = 0});
  for (std::uint64_t position = 0; position < 20; ++position) EXPECT_EQ(sampler.sample(kScores, position), 1);
}

TEST(Sampler, ClassesAreDrawnAsOftenAsTheirProbabilitiesSay) {
  for (const double temperature : {0.5, 1.0, 4.0}) {
    double total = 0;
    for (const double score : kScores) total += std::exp(score / temperature);
    const auto drawn = shares({.temperature = temperature, .seed = 3});
    for (std::size_t k = 0; k < drawn.size(); ++k) EXPECT_NEAR(drawn[k], std::exp(kScores[k] / temperature) / total, 0.015) << k;
  }
}

TEST(Sampler, OnlyTheLikeliestAreDrawn) {
  const auto drawn = shares({.top_k = 3});
  EXPECT_EQ(drawn[0], 0);
  for (const std::size_t k : {1U, 2U, 3U}) EXPECT_GT(drawn[k], 0) << k;
}

TEST(Sampler, OnlyTheFewestWithTheShareAreDrawn) {
  const auto drawn = shares({.top_p = 0.7});  // the two likeliest have 0.8 of the probability, one 0.4
  EXPECT_EQ(drawn[0], 0);
  EXPECT_EQ(drawn[2], 0);
  EXPECT_NEAR(drawn[1], 0.5, 0.015);
}

TEST(Sampler, TheSameSeedAndPositionGiveTheSame) {
  Sampler one({.seed = 1}), again({.seed = 1}), other({.seed = 2});
  std::set<bool> differs;
  for (std::uint64_t position = 0; position < 100; ++position) {
    const std::int64_t drawn = one.sample(kScores, position);
    EXPECT_EQ(again.sample(kScores, position), drawn);
    differs.insert(other.sample(kScores, position) != drawn);
  }
  EXPECT_TRUE(differs.contains(true));
}

TEST(Sampler, ScoresFarApartDoNotOverflow) {
  Sampler sampler({.temperature = 0.01});
  EXPECT_EQ(sampler.sample(std::array{-1e300, 1e300, 0.0}, 0), 1);
}

TEST(Sampling, ImpossibleNumbersAreRefused) {
  EXPECT_THROW(check({.temperature = -1}), UserError);
  EXPECT_THROW(check({.temperature = std::nan("")}), UserError);
  EXPECT_THROW(check({.top_k = -1}), UserError);
  EXPECT_THROW(check({.top_p = 0}), UserError);
  EXPECT_THROW(check({.top_p = 1.5}), UserError);
}

}  // namespace
}  // namespace snug::train
