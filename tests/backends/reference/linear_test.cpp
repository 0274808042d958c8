#include "support.h"

namespace snug::backends {
namespace {

// Around the tiles of 32 rows, 16 columns and 32 sums.
struct Sizes {
  std::int64_t batch, in, out;
};
const std::vector<Sizes> kSizes{{1, 1, 1}, {3, 5, 7}, {33, 20, 17}, {4, 65, 16}, {32, 32, 40}};

TEST(ReferenceLinear, MultipliesByTheTransposedWeight) {
  const Tensor x({.dtype = DType::f32, .shape = {2, 3}}, {1, 2, 3, 4, 5, 6});
  const Tensor weight({.dtype = DType::f32, .shape = {2, 3}}, {1, 10, 100, 0, 0, -1});
  const Tensor bias({.dtype = DType::f32, .shape = {2}}, {0.5, 7});
  EXPECT_EQ(run(ops::linear, {x, weight, bias})[0].logical(), (std::vector<double>{321.5, 4, 654.5, 1}));
  EXPECT_EQ(run(ops::linear, {x, weight})[0].logical(), (std::vector<double>{321, -3, 654, -6}));
}

TEST(ReferenceLinear, AllThreeProductsSumEveryTriple) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto [batch, in, out] : kSizes) {
      const Tensor x = Tensor::random({.dtype = dtype, .shape = {batch, in}}, 1);
      const Tensor weight = Tensor::random({.dtype = dtype, .shape = {out, in}}, 2);
      const Tensor dy = Tensor::random({.dtype = dtype, .shape = {batch, out}}, 3);
      const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
      std::vector<double> y(at(batch * out)), dx(at(batch * in)), dweight(at(out * in));
      for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t i = 0; i < in; ++i) {
          for (std::int64_t o = 0; o < out; ++o) {
            y[at(n * out + o)] += x.at(n, i) * weight.at(o, i);
            dx[at(n * in + i)] += dy.at(n, o) * weight.at(o, i);
            dweight[at(o * in + i)] += dy.at(n, o) * x.at(n, i);
          }
        }
      }
      expect_close(run(ops::linear, {x, weight})[0], y);
      const Tensor bias = Tensor::random({.dtype = dtype, .shape = {out}}, 4);
      for (std::int64_t i = 0; i < batch * out; ++i) y[at(i)] += bias[i % out];
      expect_close(run(ops::linear, {x, weight, bias})[0], y);
      expect_close(run(ops::linear_grad_input, {dy, weight})[0], dx);
      expect_close(run(ops::linear_grad_weight, {dy, x})[0], dweight);
    }
  }
}

TEST(ReferenceSumToChannels, SumsOverEverythingButTheChannel) {
  for_every_variant([](const Variant& variant) {
    for (const Shape& shape : {Shape{4, 3, 2, 5}, Shape{2, 33, 3, 1}, Shape{5, 18}, Shape{2, 4, 3}}) {
      const Tensor x = Tensor::random(variant.row(shape), 1);
      const Tensor in_layout = shape.rank() == 4 ? x.with_layout(variant.first_channels_last) : x;
      std::vector<double> expected(static_cast<std::size_t>(shape[1]));
      const std::int64_t pixels = shape.elements() / shape[0] / shape[1];
      for (std::int64_t i = 0; i < x.elements(); ++i) expected[static_cast<std::size_t>(i / pixels % shape[1])] += x[i];
      expect_close(run(ops::sum_to_channels, {in_layout})[0], expected);
    }
  });
}

}  // namespace
}  // namespace snug::backends
