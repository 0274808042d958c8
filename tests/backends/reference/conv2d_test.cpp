#include "ops/conv2d.h"

#include "support.h"

namespace snug::backends {
namespace {

struct Convolution {
  Shape x, w;
  Integers stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;

  Attributes attributes() const { return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}}; }
  Shape y() const {
    const auto g = ops::Conv2dGeometry::from(x, w, attributes());
    return {g.batch, g.out_channels, g.out_height, g.out_width};
  }
};

// Sizes around the tiles of 32 pixels, 16 columns and 32 sums, and every feature of the op.
const std::vector<Convolution> kConvolutions{
    {.x = {1, 1, 1, 1}, .w = {1, 1, 1, 1}},
    {.x = {2, 3, 5, 7}, .w = {4, 3, 3, 3}, .padding = {1, 1}},
    {.x = {2, 5, 9, 8}, .w = {17, 5, 3, 2}, .stride = {2, 3}, .padding = {1, 0}},
    {.x = {1, 33, 6, 6}, .w = {16, 33, 1, 1}, .stride = {2, 2}},
    {.x = {3, 4, 8, 7}, .w = {6, 4, 3, 3}, .padding = {2, 3}, .dilation = {2, 3}},
    {.x = {2, 8, 6, 5}, .w = {36, 4, 3, 3}, .stride = {1, 2}, .padding = {1, 1}, .groups = 2},
    {.x = {2, 6, 5, 5}, .w = {6, 1, 3, 3}, .padding = {1, 1}, .groups = 6},
    {.x = {1, 40, 4, 4}, .w = {20, 40, 4, 4}},
    {.x = {1, 2, 3, 3}, .w = {3, 2, 2, 2}, .stride = {3, 3}, .padding = {2, 2}},  // corners lie in the padding alone
};

// Calls visit(product of the three numbers) for every multiply-add: y index, x index, w index. The input is walked, not the
// output.
void for_every_tap(const Convolution& conv,
                   const std::function<void(const Integers& y, const Integers& x, const Integers& w)>& visit) {
  const Shape y = conv.y();
  const std::int64_t group_out = conv.w[0] / conv.groups, group_in = conv.w[1];
  for (std::int64_t n = 0; n < conv.x[0]; ++n)
    for (std::int64_t ic = 0; ic < conv.x[1]; ++ic)
      for (std::int64_t ih = 0; ih < conv.x[2]; ++ih)
        for (std::int64_t iw = 0; iw < conv.x[3]; ++iw)
          for (std::int64_t kh = 0; kh < conv.w[2]; ++kh)
            for (std::int64_t kw = 0; kw < conv.w[3]; ++kw)
              for (std::int64_t oh = 0; oh < y[2]; ++oh)
                for (std::int64_t ow = 0; ow < y[3]; ++ow) {
                  if (oh * conv.stride[0] + kh * conv.dilation[0] != ih + conv.padding[0]) continue;
                  if (ow * conv.stride[1] + kw * conv.dilation[1] != iw + conv.padding[1]) continue;
                  const std::int64_t group = ic / group_in;
                  for (std::int64_t oc = group * group_out; oc < (group + 1) * group_out; ++oc) {
                    visit({n, oc, oh, ow}, {n, ic, ih, iw}, {oc, ic % group_in, kh, kw});
                  }
                }
}

std::size_t number(const Tensor& tensor, const Integers& index) { return static_cast<std::size_t>(tensor.number_of(index)); }

// A tensor and its elements in logical order.
struct Known {
  Tensor tensor;
  std::vector<double> values = tensor.logical();
};

TEST(ReferenceConv2d, SumsTheProductsUnderTheWindowAndAddsTheBias) {
  for (const Convolution& conv : kConvolutions) {
    for_every_variant([&](const Variant& variant) {
      const Known x{Tensor::random(variant.first(conv.x), 1)};
      const Known w{Tensor::random(variant.second(conv.w), 2)};
      const Tensor bias = Tensor::random(variant.row({conv.w[0]}), 3);
      const Tensor y = run(ops::conv2d, {x.tensor, w.tensor}, conv.attributes())[0];
      std::vector<double> expected(static_cast<std::size_t>(y.elements()));
      for_every_tap(conv, [&](const Integers& at_y, const Integers& at_x, const Integers& at_w) {
        expected[number(y, at_y)] += x.values[number(x.tensor, at_x)] * w.values[number(w.tensor, at_w)];
      });
      expect_close(y, expected);
      const std::int64_t pixels = y.type().shape[2] * y.type().shape[3];
      for (std::int64_t i = 0; i < y.elements(); ++i) expected[static_cast<std::size_t>(i)] += bias[i / pixels % conv.w[0]];
      expect_close(run(ops::conv2d, {x.tensor, w.tensor, bias}, conv.attributes())[0], expected);
    });
  }
}

TEST(ReferenceConv2d, InputGradientIsTheAdjoint) {
  for (const Convolution& conv : kConvolutions) {
    for_every_variant([&](const Variant& variant) {
      const Known dy{Tensor::random(variant.first(conv.y()), 3)};
      const Known w{Tensor::random(variant.second(conv.w), 2)};
      Attributes attributes = conv.attributes();
      attributes.set("input_shape", Integers(conv.x.dims().begin(), conv.x.dims().end()));
      const Tensor dx = run(ops::conv2d_grad_input, {dy.tensor, w.tensor}, attributes)[0];
      std::vector<double> expected(static_cast<std::size_t>(dx.elements()));
      for_every_tap(conv, [&](const Integers& at_y, const Integers& at_x, const Integers& at_w) {
        expected[number(dx, at_x)] += dy.values[number(dy.tensor, at_y)] * w.values[number(w.tensor, at_w)];
      });
      expect_close(dx, expected);
    });
  }
}

TEST(ReferenceConv2d, WeightGradientIsTheAdjoint) {
  for (const Convolution& conv : kConvolutions) {
    for_every_variant([&](const Variant& variant) {
      const Known dy{Tensor::random(variant.first(conv.y()), 3)};
      const Known x{Tensor::random(variant.second(conv.x), 1)};
      Attributes attributes = conv.attributes();
      attributes.set("kernel", Integers{conv.w[2], conv.w[3]});
      for (const bool channels_last : {false, true}) {
        const Type type{.dtype = variant.dtype, .shape = conv.w, .layout = plain_layout(channels_last)};
        const Tensor dw = run(ops::conv2d_grad_weight, {dy.tensor, x.tensor}, attributes, {.output_types = {type}})[0];
        std::vector<double> expected(static_cast<std::size_t>(dw.elements()));
        for_every_tap(conv, [&](const Integers& at_y, const Integers& at_x, const Integers& at_w) {
          expected[number(dw, at_w)] += dy.values[number(dy.tensor, at_y)] * x.values[number(x.tensor, at_x)];
        });
        expect_close(dw, expected);
      }
    });
  }
}

TEST(ReferenceConv2d, WeightIsNotFlipped) {
  for_every_variant([](const Variant& variant) {
    const Tensor x(variant.first({1, 1, 2, 3}), {1, 2, 3, 4, 5, 6});
    const Tensor w(variant.second({2, 1, 2, 2}), {1, 10, 100, 1000, 0, 0, 0, 1});
    const Tensor bias(variant.row({2}), {0.5, -8});
    const Convolution conv{.x = x.type().shape, .w = w.type().shape};
    expect_close(run(ops::conv2d, {x, w, bias}, conv.attributes())[0], {5421.5, 6532.5, -3, -2});
  });
}

// 2^24 + 1 is not a float: adding ones to 2^24 in float would lose all of them.
TEST(ReferenceConv2d, SumsAreTakenInDouble) {
  const Convolution conv{.x = {1, 5, 1, 1}, .w = {1, 5, 1, 1}};
  const Tensor x({.dtype = DType::f32, .shape = conv.x}, {16777216, 1, 1, 1, 1});
  const Tensor w({.dtype = DType::f32, .shape = conv.w}, {1, 1, 1, 1, 1});
  EXPECT_EQ(run(ops::conv2d, {x, w}, conv.attributes())[0][0], 16777220.0);
}

}  // namespace
}  // namespace snug::backends
