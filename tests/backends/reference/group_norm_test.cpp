#include <cmath>

#include "support.h"

namespace snug::backends {
namespace {

Attributes attributes_of(std::int64_t groups) { return {{"groups", groups}, {"epsilon", 1e-5}}; }

void expect_near(const Tensor& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.elements(), static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    EXPECT_NEAR(got[i], expected[static_cast<std::size_t>(i)], got.type().dtype == DType::f32 ? 1e-6 : 1e-14) << i;
  }
}

TEST(ReferenceGroupNorm, AgreesWithPyTorch) {
  for_every_variant([](const Variant& variant) {
    const Tensor x(variant.first({1, 4, 1, 2}), {0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 3.0, 1.0});
    const Tensor dy(variant.second({1, 4, 1, 2}), {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2});
    const Tensor weight(variant.row({4}), {1, 2, -0.5, 0.75}), bias(variant.row({4}), {0.1, 0.2, 0.3, 0.4});
    const auto y = run(ops::group_norm, {x, weight, bias}, attributes_of(2));
    expect_near(y[0], {0.15862078032576699, -1.2482779474926402, 3.1310390162883484, -0.15172468195460176, 0.18331031840634598,
                       1.0234760258806548, 1.4152002298647899, 0.2949792865657114});
    expect_near(y[1], {0.4375, 1.1875});
    expect_near(run(ops::group_norm_grad_input, {dy, x, y[1], y[2], weight}, attributes_of(2))[0],
                {-0.7783871251109709, -0.1522964627838963, 0.002420940380361669, 0.9282626475145052, -0.8443344030151563,
                 -0.15152240366910047, 0.07850848566550084, 0.917348321018756});
    const auto parameters = run(ops::group_norm_grad_parameters, {dy, x, y[1], y[2]}, attributes_of(2));
    expect_near(parameters[0], {-0.6594837786648784, 0.9232772901308297, -1.8787038736578296, 2.0887453005264067});
    expect_near(parameters[1], {0.75, 1.75, 2.75, 3.75});
  });
}

TEST(ReferenceGroupNorm, EveryExampleAndGroupIsNormalizedByItself) {
  for_every_variant([](const Variant& variant) {
    constexpr std::int64_t kBatch = 3, kChannels = 36, kPixels = 6, kGroups = 3, kPerGroup = 12 * kPixels;
    const Tensor x = Tensor::random(variant.first({kBatch, kChannels, 2, 3}), 1);
    const Tensor dy = Tensor::random(variant.second({kBatch, kChannels, 2, 3}), 2);
    const Tensor weight = Tensor::random(variant.row({kChannels}), 3), bias = Tensor::random(variant.row({kChannels}), 4);
    const auto y = run(ops::group_norm, {x, weight, bias}, attributes_of(kGroups));
    // In logical order a group of an example is one stretch of kPerGroup elements.
    std::vector<double> means, variances, expected, weight_gradient(kChannels), bias_gradient(kChannels);
    for (std::int64_t row = 0; row < kBatch * kGroups; ++row) {
      double sum = 0, squares = 0;
      for (std::int64_t i = row * kPerGroup; i < (row + 1) * kPerGroup; ++i) {
        sum += x[i];
        squares += x[i] * x[i];
      }
      const double mean = sum / kPerGroup, variance = squares / kPerGroup - mean * mean;
      means.push_back(mean);
      variances.push_back(variance);
      for (std::int64_t i = row * kPerGroup; i < (row + 1) * kPerGroup; ++i) {
        const std::int64_t c = i / kPixels % kChannels;
        expected.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c]);
        const double kept_mean = y[1][row], kept_variance = y[2][row];  // rounded to the dtype, as the gradient sees them
        weight_gradient[static_cast<std::size_t>(c)] += dy[i] * (x[i] - kept_mean) / std::sqrt(kept_variance + 1e-5);
        bias_gradient[static_cast<std::size_t>(c)] += dy[i];
      }
    }
    expect_close(y[0], expected);
    expect_close(y[1], means);
    expect_close(y[2], variances);
    const auto parameters = run(ops::group_norm_grad_parameters, {dy, x, y[1], y[2]}, attributes_of(kGroups));
    expect_close(parameters[0], weight_gradient);
    expect_close(parameters[1], bias_gradient);
  });
}

TEST(ReferenceGroupNorm, InputGradientIsTheDerivative) {
  const Variant variant{DType::f64, true, false};
  const Tensor x = Tensor::random(variant.first({2, 6, 2, 2}), 1), dy = Tensor::random(variant.second({2, 6, 2, 2}), 2);
  const Tensor weight = Tensor::random(variant.row({6}), 3), bias = Tensor::random(variant.row({6}), 4);
  const auto loss = [&](const Tensor& at) {
    const Tensor y = run(ops::group_norm, {at, weight, bias}, attributes_of(2))[0];
    double sum = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const auto y = run(ops::group_norm, {x, weight, bias}, attributes_of(2));
  const Tensor dx = run(ops::group_norm_grad_input, {dy, x, y[1], y[2], weight}, attributes_of(2))[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    Tensor above = x, below = x;
    above.set(i, x[i] + 1e-5);
    below.set(i, x[i] - 1e-5);
    EXPECT_NEAR(dx[i], (loss(above) - loss(below)) / 2e-5, 1e-8) << i;
  }
}

}  // namespace
}  // namespace snug::backends
