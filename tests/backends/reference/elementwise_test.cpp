#include <cmath>
#include <limits>

#include "base/error.h"
#include "support.h"

namespace snug::backends {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ReferenceRelu, KeepsWhatIsPositive) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor y = run(ops::relu, {Tensor({.dtype = dtype, .shape = {5}}, {-2, -0.0, 0, 0.5, 3})})[0];
    EXPECT_EQ(y.logical(), (std::vector<double>{0, 0, 0, 0.5, 3}));
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_FALSE(std::signbit(y[i])) << "negative zero at " << i;
  }
}

TEST(ReferenceRelu, NaNPassesThrough) {
  const Tensor y = run(ops::relu, {Tensor({.dtype = DType::f32, .shape = {2}}, {kNaN, -1})})[0];
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0.0);
}

TEST(ReferenceRelu, GradientPassesWhereTheOutputIsPositive) {
  for_every_variant([](const Variant& variant) {
    const Tensor dy = Tensor::random(variant.first({2, 3, 3, 5}), 1), x = Tensor::random(variant.second({2, 3, 3, 5}), 2);
    const Tensor y = run(ops::relu, {x})[0];
    std::vector<double> expected;
    for (std::int64_t i = 0; i < x.elements(); ++i) expected.push_back(x[i] > 0 ? dy[i] : 0);
    EXPECT_EQ(run(ops::relu_grad, {dy, y})[0].logical(), expected);
  });
}

TEST(ReferenceRelu, SignBitsLieInTheOrderOfTheValueEightToAByte) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor y({.dtype = dtype, .shape = {11}}, {1, 0, 0, 2, 0, 0, 0, 5, -1, 3, kNaN});
    const Tensor bits = run(ops::sign_bits, {y})[0];
    ASSERT_EQ(bits.size(), 2U);
    EXPECT_EQ(bits.data()[0], std::byte{0b10001001});
    EXPECT_EQ(bits.data()[1], std::byte{0b00000010});  // the bits behind the last element are 0
    const Tensor pixels({.dtype = dtype, .shape = {1, 3, 1, 2}, .layout = Layout::channels_last()}, {1, 0, 0, 0, 1, 1});
    EXPECT_EQ(run(ops::sign_bits, {pixels})[0].data()[0], std::byte{0b00100101});  // pixel by pixel: 1 0 1, 0 0 1
  }
}

TEST(ReferenceRelu, BothRecipesGiveTheSameGradient) {
  for_every_variant([](const Variant& variant) {
    const Tensor dy = Tensor::random(variant.first({3, 5, 2, 3}), 1);
    const Tensor y = run(ops::relu, {Tensor::random(variant.second({3, 5, 2, 3}), 2)})[0];
    const Tensor bits = run(ops::sign_bits, {y})[0];
    EXPECT_TRUE(run(ops::relu_grad_bits, {dy, bits})[0].same_bytes(run(ops::relu_grad, {dy, y})[0]));
  });
}

// x * P(N(0,1) <= x) from tables, and the approximation evaluated by hand.
TEST(ReferenceGelu, IsThatOfTheErrorFunctionOrOfTheHyperbolicTangent) {
  const Tensor x({.dtype = DType::f64, .shape = {4}}, {0, 1, -1, -8});
  const std::vector<double> exact = run(ops::gelu, {x}, {{"tanh", std::int64_t{0}}})[0].logical();
  const std::vector<double> approximate = run(ops::gelu, {x}, {{"tanh", std::int64_t{1}}})[0].logical();
  EXPECT_EQ(exact[0], 0);
  EXPECT_NEAR(exact[1], 0.8413447460685429, 1e-15);
  EXPECT_NEAR(exact[2], -0.15865525393145707, 1e-15);
  EXPECT_NEAR(exact[3] / -4.976768459417424e-15, 1, 1e-12);  // no digits are lost far below zero
  EXPECT_NEAR(approximate[1], 0.8411919906082768, 1e-15);
  EXPECT_NEAR(approximate[2], -0.15880800939172324, 1e-15);
}

// Far from zero it is the identity or nothing, and its slope 1 or 0; what is not a number stays visible.
TEST(ReferenceGelu, EdgesAreFiniteAndNaNPassesThrough) {
  const double large = 1e30, infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x({.dtype = dtype, .shape = {6}}, {large, -large, -0.0, infinity, -infinity, kNaN});
    const Tensor dy({.dtype = dtype, .shape = {6}}, {1, 1, 1, 1, 1, 1});
    for (const std::int64_t tanh : {0, 1}) {
      const Attributes form{{"tanh", tanh}};
      const Tensor y = run(ops::gelu, {x}, form)[0], dx = run(ops::gelu_grad, {dy, x}, form)[0];
      EXPECT_EQ(y[0], x[0]);
      EXPECT_EQ(y[1], 0);
      EXPECT_EQ(y[2], 0);
      EXPECT_EQ(y[3], infinity);
      EXPECT_TRUE(std::isnan(y[4]));
      EXPECT_TRUE(std::isnan(y[5]));
      const std::vector<double> slopes = dx.logical();
      EXPECT_EQ((std::vector<double>(slopes.begin(), slopes.begin() + 5)), (std::vector<double>{1, 0, 0.5, 1, 0}));
      EXPECT_TRUE(std::isnan(slopes[5]));
    }
  }
  const Tensor x({.dtype = DType::f32, .shape = {1}}, {0});
  const Attributes neither{{"tanh", std::int64_t{2}}};
  EXPECT_THROW(run(ops::gelu, {x}, neither), UserError);
}

TEST(ReferenceAdd, AddsElementByElement) {
  for_every_variant([](const Variant& variant) {
    const Tensor a = Tensor::random(variant.first({2, 3, 4, 5}), 1), b = Tensor::random(variant.second({2, 3, 4, 5}), 2);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < a.elements(); ++i) expected.push_back(a[i] + b[i]);
    expect_close(run(ops::add, {a, b})[0], expected);
  });
}

TEST(ReferenceReshape, MovesTheBytesOnlyWhenTheyAreElsewhere) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::random({.dtype = dtype, .shape = {2, 3, 2, 1}}, 1);
    const Attributes attributes{{"shape", Integers{4, 3}}};
    EXPECT_EQ(run(ops::reshape, {x}, attributes)[0].logical(), x.logical());
    EXPECT_EQ(run(ops::reshape, {x}, attributes, {.in_place = {{0, 0}}})[0].logical(), x.logical());
  }
}

TEST(ReferenceRelayout, MovesEveryElementToItsPlace) {
  for_every_variant([](const Variant& variant) {
    const Tensor x = Tensor::random(variant.first({2, 3, 4, 5}), 1);
    const Tensor y = run(ops::relayout, {x}, {{"channels_last", std::int64_t{variant.second_channels_last}}})[0];
    EXPECT_EQ(y.type().layout.kind == Layout::Kind::channels_last, variant.second_channels_last);
    EXPECT_EQ(y.logical(), x.logical());
  });
}

TEST(ReferenceShortcut, TakesEveryStridethPixelAndPadsChannelsWithZeros) {
  for_every_variant([](const Variant& variant) {
    for (const std::int64_t stride : {1, 2, 3}) {
      const Attributes attributes{{"stride", stride}, {"channels", std::int64_t{5}}};
      const Tensor x = Tensor::random(variant.first({2, 3, 5, 4}), 1);
      const Tensor y = run(ops::shortcut, {x}, attributes)[0];
      const Shape& shape = y.type().shape;
      const Tensor dy = Tensor::random(variant.second(shape), 2);
      Attributes backward = attributes;
      backward.set("input_shape", Integers{2, 3, 5, 4});
      const Tensor dx = run(ops::shortcut_grad, {dy}, backward)[0];
      std::vector<double> gradient(static_cast<std::size_t>(x.elements()));
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        for (std::int64_t c = 0; c < shape[1]; ++c) {
          for (std::int64_t h = 0; h < shape[2]; ++h) {
            for (std::int64_t w = 0; w < shape[3]; ++w) {
              EXPECT_EQ(y.at(n, c, h, w), c < 3 ? x.at(n, c, h * stride, w * stride) : 0.0);
              if (c < 3) gradient[static_cast<std::size_t>(x.number_of({n, c, h * stride, w * stride}))] = dy.at(n, c, h, w);
            }
          }
        }
      }
      EXPECT_EQ(dx.logical(), gradient);
    }
  });
}

}  // namespace
}  // namespace snug::backends
