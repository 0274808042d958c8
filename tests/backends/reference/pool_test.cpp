#include "ops/pool.h"

#include <cmath>
#include <limits>

#include "support.h"

namespace snug::backends {
namespace {

struct Pooling {
  Shape x;
  Integers kernel, stride, padding{0, 0};

  Attributes attributes() const { return {{"kernel", kernel}, {"stride", stride}, {"padding", padding}}; }
  Attributes backward() const {
    Attributes result = attributes();
    result.set("input_shape", Integers(x.dims().begin(), x.dims().end()));
    return result;
  }
  Shape y() const { return ops::PoolGeometry::from(x, attributes()).output(); }
};

const std::vector<Pooling> kPoolings{
    {.x = {2, 3, 4, 6}, .kernel = {2, 2}, .stride = {2, 2}},
    {.x = {2, 5, 7, 5}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
    {.x = {1, 3, 5, 6}, .kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}},  // columns that no window covers
    {.x = {1, 2, 7, 7}, .kernel = {5, 5}, .stride = {1, 2}, .padding = {2, 2}},  // more than 16 in a window
    {.x = {3, 1, 3, 3}, .kernel = {1, 1}, .stride = {2, 2}},
};

// Calls visit(y index, place in the window, x index) for every element under every window, row by row.
void for_every_window(const Pooling& pool,
                      const std::function<void(const Integers& y, std::int64_t place, const Integers& x)>& visit) {
  const Shape y = pool.y();
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t c = 0; c < y[1]; ++c)
      for (std::int64_t oh = 0; oh < y[2]; ++oh)
        for (std::int64_t ow = 0; ow < y[3]; ++ow)
          for (std::int64_t place = 0; place < pool.kernel[0] * pool.kernel[1]; ++place) {
            const std::int64_t ih = oh * pool.stride[0] + place / pool.kernel[1] - pool.padding[0];
            const std::int64_t iw = ow * pool.stride[1] + place % pool.kernel[1] - pool.padding[1];
            if (ih >= 0 && iw >= 0 && ih < pool.x[2] && iw < pool.x[3]) visit({n, c, oh, ow}, place, {n, c, ih, iw});
          }
}

std::size_t number(const Tensor& tensor, const Integers& index) { return static_cast<std::size_t>(tensor.number_of(index)); }

// Few different values, so that many windows have several largest elements.
Tensor with_ties(const Type& type, std::uint64_t seed) {
  Tensor tensor = Tensor::random(type, seed, -2, 2);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, std::floor(tensor[i]));
  return tensor;
}

struct Winners {
  std::vector<double> largest, place, gradient;  // the last: of x, from dy
};

Winners winners_of(const Pooling& pool, const Tensor& x, const Tensor& dy) {
  const auto windows = static_cast<std::size_t>(dy.elements());
  Winners result{std::vector<double>(windows, -std::numeric_limits<double>::infinity()), std::vector<double>(windows),
                 std::vector<double>(static_cast<std::size_t>(x.elements()))};
  std::vector<std::size_t> at(windows);
  for_every_window(pool, [&](const Integers& window, std::int64_t place, const Integers& element) {
    const std::size_t i = number(dy, window);
    const double value = x[x.number_of(element)];
    if (value <= result.largest[i]) return;
    result.largest[i] = value;
    result.place[i] = static_cast<double>(place);
    at[i] = number(x, element);
  });
  for (std::size_t i = 0; i < windows; ++i) result.gradient[at[i]] += dy[static_cast<std::int64_t>(i)];
  return result;
}

TEST(ReferenceMaxPool, FirstOfTheLargestWinsAndTakesTheGradient) {
  for (const Pooling& pool : kPoolings) {
    for_every_variant([&](const Variant& variant) {
      const Tensor x = with_ties(variant.first(pool.x), 1), dy = Tensor::random(variant.second(pool.y()), 2);
      const Winners expected = winners_of(pool, x, dy);
      EXPECT_EQ(run(ops::max_pool, {x}, pool.attributes())[0].logical(), expected.largest);
      const Tensor argmax = run(ops::max_pool_argmax, {x}, pool.attributes())[0];
      EXPECT_EQ(argmax.type().dtype, pool.kernel[0] * pool.kernel[1] > 16 ? DType::u8 : DType::u4);
      EXPECT_EQ(argmax.logical(), expected.place);
      const Tensor dx = run(ops::max_pool_grad, {dy, x}, pool.attributes())[0];
      expect_close(dx, expected.gradient);
      EXPECT_EQ(run(ops::max_pool_grad_argmax, {dy, argmax}, pool.backward())[0].logical(), dx.logical());
    });
  }
}

TEST(ReferenceMaxPool, NumbersOfFourBitsLieTwoToAByteTheFirstLow) {
  const Pooling pool{.x = {1, 1, 2, 6}, .kernel = {2, 2}, .stride = {2, 2}};
  const Tensor x({.dtype = DType::f32, .shape = pool.x}, {0, 9, 0, 0, 9, 0,  //
                                                          0, 0, 0, 9, 0, 0});
  const Tensor argmax = run(ops::max_pool_argmax, {x}, pool.attributes())[0];
  ASSERT_EQ(argmax.size(), 2U);
  EXPECT_EQ(argmax.data()[0], std::byte{0x31});
  EXPECT_EQ(argmax.data()[1], std::byte{0x00});
}

TEST(ReferenceMaxPool, WindowOfNothingButMinusInfinityHasAWinner) {
  const double low = -std::numeric_limits<double>::infinity();
  const Pooling pool{.x = {1, 1, 2, 2}, .kernel = {2, 2}, .stride = {2, 2}};
  const Tensor x({.dtype = DType::f64, .shape = pool.x}, {low, low, low, low}),
      dy({.dtype = DType::f64, .shape = {1, 1, 1, 1}}, {5});
  EXPECT_EQ(run(ops::max_pool, {x}, pool.attributes())[0][0], low);
  EXPECT_EQ(run(ops::max_pool_grad, {dy, x}, pool.attributes())[0].logical(), (std::vector<double>{5, 0, 0, 0}));
}

TEST(ReferenceMaxPool, NaNWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Pooling pool{.x = {1, 1, 2, 2}, .kernel = {2, 2}, .stride = {2, 2}};
  const Tensor x({.dtype = DType::f64, .shape = pool.x}, {1, nan, nan, 7});
  EXPECT_TRUE(std::isnan(run(ops::max_pool, {x}, pool.attributes())[0][0]));
  EXPECT_EQ(run(ops::max_pool_argmax, {x}, pool.attributes())[0][0], 1.0);
}

TEST(ReferenceAvgPool, PaddingCountsAsZeros) {
  for (const Pooling& pool : kPoolings) {
    for_every_variant([&](const Variant& variant) {
      const Tensor x = Tensor::random(variant.first(pool.x), 1), dy = Tensor::random(variant.second(pool.y()), 2);
      const auto size = static_cast<double>(pool.kernel[0] * pool.kernel[1]);
      std::vector<double> expected(static_cast<std::size_t>(dy.elements())), gradient(static_cast<std::size_t>(x.elements()));
      for_every_window(pool, [&](const Integers& window, std::int64_t, const Integers& element) {
        expected[number(dy, window)] += x[x.number_of(element)] / size;
        gradient[number(x, element)] += dy[dy.number_of(window)] / size;
      });
      expect_close(run(ops::avg_pool, {x}, pool.attributes())[0], expected);
      expect_close(run(ops::avg_pool_grad, {dy}, pool.backward())[0], gradient);
    });
  }
}

TEST(ReferenceGlobalAvgPool, AveragesEachChannelOfEachExample) {
  for_every_variant([](const Variant& variant) {
    constexpr std::int64_t kPixels = 6;
    const Tensor x = Tensor::random(variant.first({3, 19, 2, 3}), 1), dy = Tensor::random(variant.row({3, 19}), 2);
    std::vector<double> expected(3 * 19), gradient;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      expected[static_cast<std::size_t>(i / kPixels)] += x[i] / kPixels;
      gradient.push_back(dy[i / kPixels] / kPixels);
    }
    expect_close(run(ops::global_avg_pool, {x})[0], expected);
    const Attributes backward{{"input_shape", Integers{3, 19, 2, 3}}};
    expect_close(run(ops::global_avg_pool_grad, {dy}, backward, {.output_types = {variant.first({3, 19, 2, 3})}})[0], gradient);
  });
}

}  // namespace
}  // namespace snug::backends
