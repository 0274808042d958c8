#include <cmath>
#include <limits>

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
