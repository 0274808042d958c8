#include <limits>

#include "support.h"

namespace snug::backends {
namespace {

Attributes rule(double momentum, double weight_decay, bool nesterov) {
  return {{"momentum", momentum}, {"weight_decay", weight_decay}, {"nesterov", std::int64_t{nesterov}}};
}

Tensor rate(double learning_rate, double loss_scale = 1, std::uint16_t skip = 0) {
  return Tensor::scalars({.learning_rate = learning_rate, .loss_scale = loss_scale, .skip_update = skip});
}

struct PyTorch {
  double momentum;
  bool nesterov;
  std::vector<double> weight, momentum_buffer;  // after two steps
};

TEST(ReferenceSgd, TwoStepsAgreeWithPyTorch) {
  const std::vector<PyTorch> cases{{0.9, true, {0.81257411, -0.607057805}, {0.7180310000000001, 1.0924095}},
                                   {0.9, false, {0.8771509999999999, -0.5086505}, {0.7184900000000001, 1.0915050000000002}},
                                   {0.0, false, {0.923051, -0.5991005}, {}}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Type type{.dtype = dtype, .shape = {2}};
    const double tolerance = dtype == DType::f32 ? 2e-7 : 1e-15;
    for (const PyTorch& expected : cases) {
      Tensor w(type, {1.0, -0.5}), m(type, {0, 0});
      for (const auto& gradient : {std::vector<double>{0.5, -1.0}, std::vector<double>{0.25, 2.0}}) {
        std::vector<Tensor> inputs{w, Tensor(type, gradient), rate(0.1)};
        if (expected.momentum > 0) inputs.push_back(m);
        const auto outputs = run(ops::sgd, inputs, rule(expected.momentum, 0.01, expected.nesterov));
        w = outputs[0];
        if (expected.momentum > 0) m = outputs[2];
      }
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(w[i], expected.weight[static_cast<std::size_t>(i)], tolerance);
        if (expected.momentum == 0) continue;
        EXPECT_NEAR(m[i], expected.momentum_buffer[static_cast<std::size_t>(i)], tolerance);
      }
    }
  }
}

TEST(ReferenceSgd, ComputesInFloatForF32) {
  const Type type{.dtype = DType::f32, .shape = {200}};
  const Tensor w = Tensor::random(type, 1), g = Tensor::random(type, 2), m = Tensor::random(type, 3);
  const auto outputs = run(ops::sgd, {w, g, rate(0.1, 3), m}, rule(0.9, 5e-4, true));
  for (std::int64_t i = 0; i < w.elements(); ++i) {
    const auto weight = static_cast<float>(w[i]);
    const float decayed = static_cast<float>(g[i]) / 3.0F + 5e-4F * weight;
    const float moved = 0.9F * static_cast<float>(m[i]) + decayed;
    EXPECT_EQ(outputs[2][i], double{moved});
    EXPECT_EQ(outputs[0][i], double{weight - 0.1F * (decayed + 0.9F * moved)});
  }
}

TEST(ReferenceSgd, GradientIsDividedByTheLossScaleThenCleared) {
  for_every_variant([](const Variant& variant) {
    const Tensor w = Tensor::random(variant.first({3, 2, 2, 2}), 1), g = Tensor::random(variant.second({3, 2, 2, 2}), 2);
    const Tensor m = Tensor::random(variant.first({3, 2, 2, 2}), 3);
    Tensor scaled = g;
    for (std::int64_t i = 0; i < g.elements(); ++i) scaled.set(i, g[i] * 1024);
    const auto plain = run(ops::sgd, {w, g, rate(0.1), m}, rule(0.9, 0.01, false));
    const auto divided = run(ops::sgd, {w, scaled, rate(0.1, 1024), m}, rule(0.9, 0.01, false));
    EXPECT_EQ(divided[0].logical(), plain[0].logical());
    EXPECT_EQ(divided[2].logical(), plain[2].logical());
    EXPECT_NE(plain[0].logical(), w.logical());
    EXPECT_EQ(plain[1].logical(), std::vector<double>(24, 0.0));
    EXPECT_EQ(divided[1].logical(), std::vector<double>(24, 0.0));
  });
}

TEST(ReferenceSgd, SkippedUpdateOnlyClearsTheGradient) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Type type{.dtype = dtype, .shape = {7}};
    const Tensor w = Tensor::random(type, 1), g = Tensor::random(type, 2), m = Tensor::random(type, 3);
    const auto outputs = run(ops::sgd, {w, g, rate(0.1, 1, 1), m}, rule(0.9, 0.01, true));
    EXPECT_TRUE(outputs[0].same_bytes(w));
    EXPECT_EQ(outputs[1].logical(), std::vector<double>(7, 0.0));
    EXPECT_TRUE(outputs[2].same_bytes(m));
  }
}

Tensor norm_of(double norm, double factor) { return Tensor({.dtype = DType::f64, .shape = {2}}, {norm, factor}); }

TEST(ReferenceSgd, AFactorScalesTheGradientBeforeWeightDecay) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const double momentum : {0.0, 0.9}) {
      const Type type{.dtype = dtype, .shape = {9}};
      const Tensor w = Tensor::random(type, 1), g = Tensor::random(type, 2), m = Tensor::random(type, 3);
      Tensor quarter = g;
      for (std::int64_t i = 0; i < g.elements(); ++i) quarter.set(i, g[i] / 4);
      std::vector<Tensor> scaled{w, quarter, rate(0.1)}, clipped{w, g, rate(0.1)};
      if (momentum > 0) {
        scaled.push_back(m);
        clipped.push_back(m);
      }
      clipped.push_back(norm_of(2, 0.25));
      const auto expected = run(ops::sgd, scaled, rule(momentum, 0.01, momentum > 0));
      const auto got = run(ops::sgd, clipped, rule(momentum, 0.01, momentum > 0));
      for (std::size_t o = 0; o < expected.size(); ++o) EXPECT_TRUE(got[o].same_bytes(expected[o])) << o;
    }
  }
}

TEST(ReferenceSgd, ANormThatIsNotFiniteOnlyClearsTheGradient) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Type type{.dtype = DType::f32, .shape = {7}};
  const Tensor w = Tensor::random(type, 1), g(type, std::vector<double>(7, kNaN)), m = Tensor::random(type, 3);
  const auto outputs = run(ops::sgd, {w, g, rate(0.1), m, norm_of(kNaN, kNaN)}, rule(0.9, 0.01, true));
  EXPECT_TRUE(outputs[0].same_bytes(w));
  EXPECT_EQ(outputs[1].logical(), std::vector<double>(7, 0.0));
  EXPECT_TRUE(outputs[2].same_bytes(m));
}

TEST(ReferenceGradientNorm, ALossThatIsNotFiniteMakesAFactorThatSkips) {
  const auto factor = [](double loss) {
    return run(ops::finite_factor, {Tensor({.dtype = DType::f64, .shape = {3}}, {loss, 5, 7})})[0];
  };
  EXPECT_EQ(factor(-2.5).logical(), (std::vector<double>{0, 1}));
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(std::isnan(factor(loss)[1])) << loss;
}

TEST(ReferenceGradientNorm, SumsInDoubleWhateverTheLayout) {
  for_every_variant([](const Variant& variant) {
    const Tensor g = Tensor::random(variant.first({3, 2, 2, 2}), 2);
    double expected = 0;
    for (const double value : g.logical()) expected += value * value;
    const Tensor before({.dtype = DType::f64, .shape = {1}}, {0.5});
    EXPECT_EQ(run(ops::sum_of_squares, {g}, {})[0][0], expected);
    EXPECT_EQ(run(ops::sum_of_squares, {g, before}, {})[0][0], expected + 0.5);
  });
}

// torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6))
TEST(ReferenceGradientNorm, FactorIsPyTorchs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto factor = [](double sum, double loss_scale, float clip_norm) {
    const auto outputs = run(
        ops::clip_factor,
        {Tensor({.dtype = DType::f64, .shape = {1}}, {sum}), Tensor::scalars({.loss_scale = loss_scale, .clip_norm = clip_norm})},
        {});
    return std::pair(outputs[0][0], outputs[0][1]);
  };
  EXPECT_EQ(factor(9, 1, 1.5F), std::pair(3.0, 1.5 / (3 + 1e-6)));
  EXPECT_EQ(factor(9 * 64, 8, 1.5F), std::pair(3.0, 1.5 / (3 + 1e-6)));
  EXPECT_EQ(factor(9, 1, 4), std::pair(3.0, 1.0));
  EXPECT_EQ(factor(9, 1, static_cast<float>(kInfinity)), std::pair(3.0, 1.0));
  EXPECT_EQ(factor(0, 1, 1), std::pair(0.0, 1.0));
  EXPECT_EQ(factor(kInfinity, 1, 1).first, kInfinity);
  EXPECT_TRUE(std::isnan(factor(kInfinity, 1, 1).second));
  EXPECT_TRUE(std::isnan(factor(std::numeric_limits<double>::quiet_NaN(), 1, 1).second));
}

}  // namespace
}  // namespace snug::backends
