#include <cmath>

#include "support.h"

namespace snug::backends {
namespace {

constexpr double kEpsilon = 1e-5;

Attributes grouped(std::int64_t group_size) { return {{"group_size", group_size}, {"epsilon", kEpsilon}}; }

Tensor batch_of(std::uint32_t valid, std::uint32_t batch) {
  return Tensor::scalars({.valid_examples = valid, .batch_examples = batch});
}

struct Moments {
  double mean = 0, variance = 1;
  std::int64_t count = 0;
};

// Of channel c over the examples [begin, end), from the mean of squares and the square of the mean.
Moments moments(const Tensor& x, std::int64_t c, std::int64_t begin, std::int64_t end) {
  Moments result;
  long double sum = 0, squares = 0;
  for (std::int64_t n = begin; n < end; ++n) {
    for (std::int64_t h = 0; h < x.type().shape[2]; ++h) {
      for (std::int64_t w = 0; w < x.type().shape[3]; ++w) {
        const long double value = x.at(n, c, h, w);
        sum += value;
        squares += value * value;
        ++result.count;
      }
    }
  }
  if (result.count == 0) return result;
  result.mean = static_cast<double>(sum / result.count);
  result.variance = static_cast<double>(squares / result.count - (sum / result.count) * (sum / result.count));
  return result;
}

TEST(ReferenceBatchNorm, TrainsAsPyTorchDoes) {
  for_every_variant([](const Variant& variant) {
    const Type type = variant.first({3, 1, 1, 2});
    const Tensor x(type, {0.5, -1.0, 2.0, 0.25, 1.5, -0.75});
    const Tensor dy(variant.second({3, 1, 1, 2}), {1, -2, 0.5, 0.25, -1, 3});
    const Tensor weight(variant.row({1}), {1.5}), bias(variant.row({1}), {0.25}), scalars = batch_of(3, 3);
    const auto statistics = run(ops::batch_norm_statistics, {x, scalars}, {{"group_size", std::int64_t{3}}});
    const auto near = [&](const Tensor& got, const std::vector<double>& expected) {
      for (std::int64_t i = 0; i < got.elements(); ++i) {
        EXPECT_NEAR(got[i], expected[static_cast<std::size_t>(i)], variant.dtype == DType::f32 ? 1e-6 : 1e-14) << i;
      }
    };
    near(run(ops::batch_norm_apply, {x, statistics[0], statistics[1], weight, bias, scalars}, grouped(3))[0],
         {0.3650442610818551, -1.7057524383915377, 2.435840960555248, 0.01991147783628966, 1.745575394064117,
          -1.3606196551459722});
    const auto running =
        run(ops::batch_norm_running,
            {statistics[0], statistics[1], Tensor(variant.row({1}), {0.2}), Tensor(variant.row({1}), {0.8}), scalars},
            {{"group_size", std::int64_t{3}}, {"momentum", 0.1}, {"batch", std::int64_t{3}}, {"pixels", std::int64_t{2}}});
    near(running[0], {0.22166666666666668});
    near(running[1], {0.8616666666666668});
    const auto sums = run(ops::batch_norm_grad_reduce, {dy, x, statistics[0], statistics[1]}, grouped(3));
    near(sums[0], {-0.8436579146002706});
    near(sums[1], {1.75});
    near(run(ops::batch_norm_grad_input, {dy, x, statistics[0], statistics[1], weight, sums[0], sums[1], scalars}, grouped(3))[0],
         {0.9927641739319215, -3.416812410265616, 0.5704817926915429, -0.08729804001323341, -1.5896426351987676,
          3.5305071188541524});
  });
}

TEST(ReferenceBatchNorm, StatisticsAreOfTheValidExamplesOfEachGroup) {
  for_every_variant([](const Variant& variant) {
    const Tensor x = Tensor::random(variant.first({5, 19, 2, 3}), 1);
    for (const std::int64_t valid : {5, 4, 3, 2, 1, 0}) {
      const auto statistics =
          run(ops::batch_norm_statistics, {x, batch_of(static_cast<std::uint32_t>(valid), 5)}, {{"group_size", std::int64_t{2}}});
      ASSERT_EQ(statistics[0].type().shape, Shape({3, 19}));
      std::vector<double> means, variances;
      for (std::int64_t group = 0; group < 3; ++group) {
        for (std::int64_t c = 0; c < 19; ++c) {
          const Moments expected = moments(x, c, 2 * group, std::max(2 * group, std::min(valid, 2 * group + 2)));
          means.push_back(expected.mean);
          variances.push_back(expected.variance);
        }
      }
      expect_close(statistics[0], means);
      expect_close(statistics[1], variances);
    }
  });
}

// The variance of numbers near 1e6 by the mean of squares would be lost in f32.
TEST(ReferenceBatchNorm, VarianceSurvivesALargeMean) {
  const Tensor x({.dtype = DType::f32, .shape = {4, 1}}, {1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4});
  const auto statistics = run(ops::batch_norm_statistics, {x, batch_of(4, 4)}, {{"group_size", std::int64_t{4}}});
  EXPECT_EQ(statistics[0][0], 1000002.5);
  EXPECT_EQ(statistics[1][0], 1.25);
}

TEST(ReferenceBatchNorm, EveryExampleIsNormalizedByItsGroup) {
  for_every_variant([](const Variant& variant) {
    const Tensor x = Tensor::random(variant.first({5, 3, 2, 2}), 1);
    const Tensor mean = Tensor::random(variant.row({3, 3}), 2), variance = Tensor::random(variant.row({3, 3}), 3, 0.1, 2);
    const Tensor weight = Tensor::random(variant.row({3}), 4), bias = Tensor::random(variant.row({3}), 5);
    const Tensor y = run(ops::batch_norm_apply, {x, mean, variance, weight, bias, batch_of(5, 5)}, grouped(2))[0];
    std::vector<double> expected;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::int64_t n = i / 12, c = i / 4 % 3;
      expected.push_back((x[i] - mean.at(n / 2, c)) / std::sqrt(variance.at(n / 2, c) + kEpsilon) * weight[c] + bias[c]);
    }
    expect_close(y, expected);
  });
}

TEST(ReferenceBatchNorm, StatisticsOfRankOneServeAllExamples) {
  for_every_variant([](const Variant& variant) {
    const Tensor x = Tensor::random(variant.first({3, 2, 2, 2}), 1), dy = Tensor::random(variant.second({3, 2, 2, 2}), 6);
    const Tensor mean = Tensor::random(variant.row({2}), 2), variance = Tensor::random(variant.row({2}), 3, 0.1, 2);
    const Tensor weight = Tensor::random(variant.row({2}), 4), bias = Tensor::random(variant.row({2}), 5);
    const Tensor y = run(ops::batch_norm_apply, {x, mean, variance, weight, bias, batch_of(3, 3)}, grouped(2))[0];
    const auto sums = run(ops::batch_norm_grad_reduce, {dy, x, mean, variance}, grouped(2));
    const Tensor dx = run(ops::batch_norm_grad_fixed, {dy, variance, weight}, grouped(2))[0];
    std::vector<double> expected_y, expected_dx, weight_sums(4), bias_sums(4);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::int64_t n = i / 8, c = i / 4 % 2;
      const double deviation = std::sqrt(variance[c] + kEpsilon);
      expected_y.push_back((x[i] - mean[c]) / deviation * weight[c] + bias[c]);
      expected_dx.push_back(dy[i] * weight[c] / deviation);
      weight_sums[static_cast<std::size_t>(n / 2 * 2 + c)] += dy[i] * (x[i] - mean[c]) / deviation;
      bias_sums[static_cast<std::size_t>(n / 2 * 2 + c)] += dy[i];
    }
    expect_close(y, expected_y);
    expect_close(dx, expected_dx);
    expect_close(sums[0], weight_sums);
    expect_close(sums[1], bias_sums);
  });
}

TEST(ReferenceBatchNorm, InputOfRankTwoHasOnePixel) {
  const Tensor x({.dtype = DType::f64, .shape = {3, 2}}, {1, 10, 2, 30, 6, 20});
  const auto statistics = run(ops::batch_norm_statistics, {x, batch_of(3, 3)}, {{"group_size", std::int64_t{3}}});
  expect_close(statistics[0], {3, 20});
  expect_close(statistics[1], {14.0 / 3, 200.0 / 3});
}

// The gradient of sum(dy * apply(x, statistics(x))) by central differences.
TEST(ReferenceBatchNorm, InputGradientIncludesTheWayThroughTheStatistics) {
  const Variant variant{DType::f64, true, false};
  constexpr std::int64_t kValid = 4;  // of 5: groups of 3 and 1 valid examples, then padding
  const Tensor scalars = batch_of(kValid, 7);
  const Tensor x = Tensor::random(variant.first({5, 2, 2, 3}), 1);
  Tensor dy = Tensor::random(variant.second({5, 2, 2, 3}), 2);
  for (std::int64_t i = kValid * 12; i < dy.elements(); ++i) dy.set(i, 0);
  const Tensor weight = Tensor::random(variant.row({2}), 3), bias = Tensor::random(variant.row({2}), 4);
  const auto loss = [&](const Tensor& at) {
    const auto statistics = run(ops::batch_norm_statistics, {at, scalars}, {{"group_size", std::int64_t{3}}});
    const Tensor y = run(ops::batch_norm_apply, {at, statistics[0], statistics[1], weight, bias, scalars}, grouped(3))[0];
    double sum = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const auto statistics = run(ops::batch_norm_statistics, {x, scalars}, {{"group_size", std::int64_t{3}}});
  const auto sums = run(ops::batch_norm_grad_reduce, {dy, x, statistics[0], statistics[1]}, grouped(3));
  const Tensor dx =
      run(ops::batch_norm_grad_input, {dy, x, statistics[0], statistics[1], weight, sums[0], sums[1], scalars}, grouped(3))[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    Tensor above = x, below = x;
    above.set(i, x[i] + 1e-5);
    below.set(i, x[i] - 1e-5);
    EXPECT_NEAR(dx[i], (loss(above) - loss(below)) / 2e-5, 1e-8) << i;
  }
}

TEST(ReferenceBatchNorm, GradientOfPaddingIsExactlyZero) {
  for_every_variant([](const Variant& variant) {
    const Tensor x = Tensor::random(variant.first({3, 2, 2, 2}), 1), dy = Tensor::random(variant.second({3, 2, 2, 2}), 2);
    const Tensor row = Tensor::random(variant.row({2, 2}), 3, 0.5, 1), weight = Tensor::random(variant.row({2}), 4);
    for (const std::uint32_t valid : {0U, 1U, 2U}) {  // with 0 and 2, a group has no valid example
      const Tensor dx = run(ops::batch_norm_grad_input, {dy, x, row, row, weight, row, row, batch_of(valid, 3)}, grouped(2))[0];
      for (std::int64_t i = 0; i < dx.elements(); ++i) {
        const bool padding = i / 8 >= static_cast<std::int64_t>(valid);
        EXPECT_EQ(dx[i] == 0.0, padding) << i;
      }
    }
  });
}

Attributes running_attributes(std::int64_t group_size, std::int64_t batch) {
  return {{"group_size", group_size}, {"momentum", 0.1}, {"batch", batch}, {"pixels", std::int64_t{4}}};
}

TEST(ReferenceBatchNorm, RunningStatisticsMoveByAGroupsShareOfTheStep) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    // Groups of 2 with 2, 1 and 0 valid examples, of a step of 8.
    const Tensor mean({.dtype = dtype, .shape = {3, 1}}, {1, 2, 100}), variance({.dtype = dtype, .shape = {3, 1}}, {0.5, 3, 100});
    const Tensor old_mean({.dtype = dtype, .shape = {1}}, {-1}), old_variance({.dtype = dtype, .shape = {1}}, {2});
    const auto running =
        run(ops::batch_norm_running, {mean, variance, old_mean, old_variance, batch_of(3, 8)}, running_attributes(2, 6));
    const double keep_2 = std::pow(0.9, 2.0 / 8), keep_1 = std::pow(0.9, 1.0 / 8);
    const double expected_mean = (-1 * keep_2 + 1 * (1 - keep_2)) * keep_1 + 2 * (1 - keep_1);
    const double expected_variance = (2 * keep_2 + 0.5 * 8 / 7 * (1 - keep_2)) * keep_1 + 3.0 * 4 / 3 * (1 - keep_1);
    const double tolerance = dtype == DType::f32 ? 1e-6 : 1e-14;
    EXPECT_NEAR(running[0][0], expected_mean, tolerance);
    EXPECT_NEAR(running[1][0], expected_variance, tolerance);
  }
}

TEST(ReferenceBatchNorm, GroupsOfABatchMoveTheRunningStatisticsAsMicrobatchesDo) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Variant variant{dtype, false, false};
    const Tensor mean = Tensor::random(variant.row({3, 5}), 1), variance = Tensor::random(variant.row({3, 5}), 2, 0.1, 1);
    const Tensor old_mean = Tensor::random(variant.row({5}), 3), old_variance = Tensor::random(variant.row({5}), 4, 0.1, 1);
    const auto together =
        run(ops::batch_norm_running, {mean, variance, old_mean, old_variance, batch_of(6, 6)}, running_attributes(2, 6));
    std::vector<Tensor> in_turn{old_mean, old_variance};
    for (std::int64_t group = 0; group < 3; ++group) {
      Tensor one_mean(variant.row({1, 5})), one_variance(variant.row({1, 5}));
      for (std::int64_t c = 0; c < 5; ++c) {
        one_mean.set(c, mean.at(group, c));
        one_variance.set(c, variance.at(group, c));
      }
      in_turn = run(ops::batch_norm_running, {one_mean, one_variance, in_turn[0], in_turn[1], batch_of(2, 6)},
                    running_attributes(2, 2));
    }
    EXPECT_TRUE(together[0].same_bytes(in_turn[0]));
    EXPECT_TRUE(together[1].same_bytes(in_turn[1]));
  }
}

TEST(ReferenceBatchNorm, WholeBatchMovesTheRunningStatisticsByExactlyTheMomentum) {
  const Variant variant{DType::f64, false, false};
  const Tensor mean = Tensor::random(variant.row({1, 9}), 1), zero(variant.row({9}), std::vector<double>(9, 0.0));
  const auto running = run(ops::batch_norm_running, {mean, mean, zero, zero, batch_of(2, 2)}, running_attributes(2, 2));
  for (std::int64_t c = 0; c < 9; ++c) EXPECT_EQ(running[0][c], 0.1 * mean[c]);  // 1 - 0.9^1 would be a bit less than 0.1
}

TEST(ReferenceBatchNorm, PaddingAloneLeavesTheRunningStatistics) {
  const Variant variant{DType::f32, false, false};
  const Tensor mean = Tensor::random(variant.row({2, 3}), 1), old = Tensor::random(variant.row({3}), 2);
  for (const std::uint32_t batch : {0U, 5U}) {
    const auto running = run(ops::batch_norm_running, {mean, mean, old, old, batch_of(0, batch)}, running_attributes(2, 4));
    EXPECT_TRUE(running[0].same_bytes(old));
    EXPECT_TRUE(running[1].same_bytes(old));
  }
}

TEST(ReferenceBatchNorm, RunningVarianceIsUnbiasedFromTwoElementsOn) {
  const Tensor mean({.dtype = DType::f64, .shape = {1, 1}}, {4}), variance({.dtype = DType::f64, .shape = {1, 1}}, {3});
  const Tensor old({.dtype = DType::f64, .shape = {1}}, {1});
  for (const auto& [pixels, expected] : {std::pair{1, 0.9 + 0.3}, std::pair{2, 0.9 + 0.6}, std::pair{3, 0.9 + 0.45}}) {
    Attributes attributes = running_attributes(1, 1);
    attributes.set("pixels", std::int64_t{pixels});
    const auto running = run(ops::batch_norm_running, {mean, variance, old, old, batch_of(1, 1)}, attributes);
    EXPECT_DOUBLE_EQ(running[0][0], 1.3);
    EXPECT_DOUBLE_EQ(running[1][0], expected);
  }
}

}  // namespace
}  // namespace snug::backends
