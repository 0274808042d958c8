#include <cmath>
#include <limits>

#include "support.h"

namespace snug::backends {
namespace {

constexpr std::int64_t kRows = 40, kColumns = 5, kClasses = 9, kLength = 4;

struct Loss {
  Tensor x, weight, labels;
  Scalars scalars{.valid_examples = kRows / kLength, .total_weight = 31, .loss_scale = 4};
  double smoothing = 0;
  std::vector<double> weights = {};  // of the rows

  explicit Loss(DType dtype)
      : x(Tensor::random({.dtype = dtype, .shape = {kRows, kColumns}}, 1, -2, 2)),
        weight(Tensor::random({.dtype = dtype, .shape = {kClasses, kColumns}}, 2, -2, 2)),
        labels(Tensor::random({.dtype = DType::i32, .shape = {kRows}}, 3, 0, kClasses)) {}

  Attributes attributes() const { return {{"label_smoothing", smoothing}, {"rows_per_example", kLength}}; }
  std::vector<Tensor> inputs(const Tensor& first, const std::vector<Tensor>& others) const {
    std::vector<Tensor> all{first};
    all.insert(all.end(), others.begin(), others.end());
    all.insert(all.end(), {labels, Tensor::scalars(scalars)});
    if (!weights.empty()) all.push_back({{.dtype = x.type().dtype, .shape = {kRows}}, weights});
    return all;
  }
  Tensor metrics() const { return run(ops::linear_cross_entropy, inputs(x, {weight}), attributes())[0]; }
  std::vector<Tensor> step() const { return run(ops::linear_cross_entropy_step, inputs(x, {weight}), attributes()); }
};

void expect_near(const Tensor& got, const Tensor& expected, const char* what) {
  ASSERT_EQ(got.type().shape, expected.type().shape) << what;
  for (std::int64_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-13 * (1 + std::abs(expected[i]))) << what << " " << i;
}

// The same by its parts, of which softmax_cross_entropy takes no label that is no class.
void expect_as_by_parts(const Loss& loss) {
  Loss parts = loss;
  if (parts.weights.empty()) parts.weights.assign(kRows, 1.0);
  for (std::int64_t r = 0; r < kRows; ++r) {
    if (loss.labels[r] >= 0 && loss.labels[r] < kClasses) continue;
    parts.weights[static_cast<std::size_t>(r)] = 0;
    parts.labels.set(r, 0);
  }
  const Tensor logits = run(ops::linear, {loss.x, loss.weight})[0];
  const auto inputs = parts.inputs(logits, {});
  const Tensor dlogits = run(ops::softmax_cross_entropy_grad, inputs, loss.attributes())[0];
  const auto step = loss.step();
  expect_near(loss.metrics(), run(ops::softmax_cross_entropy, inputs, loss.attributes())[0], "metrics");
  EXPECT_TRUE(step[2].same_bytes(loss.metrics()));
  expect_near(step[0], run(ops::linear_grad_weight, {dlogits, loss.x})[0], "dweight");
  expect_near(step[1], run(ops::linear_grad_input, {dlogits, loss.weight})[0], "dx");
}

TEST(ReferenceLinearCrossEntropy, IsAClassifierAndItsCrossEntropy) {
  Loss loss(DType::f64);
  expect_as_by_parts(loss);
  loss.smoothing = 0.2;
  expect_as_by_parts(loss);
  for (std::int64_t r = 0; r < kRows; ++r) loss.weights.push_back(0.25 * static_cast<double>(r % 5));
  expect_as_by_parts(loss);
  loss.scalars.valid_examples = 7;
  expect_as_by_parts(loss);
}

TEST(ReferenceLinearCrossEntropy, ALabelThatIsNoClassIsIgnored) {
  Loss loss(DType::f64);
  loss.smoothing = 0.1;
  for (const auto& [row, label] : {std::pair<std::int64_t, double>{0, -100}, {9, -1}, {21, kClasses}, {39, 2147483647}})
    loss.labels.set(row, label);
  expect_as_by_parts(loss);
  EXPECT_EQ(loss.metrics()[2], kRows - 4);
  const Tensor dx = loss.step()[1];
  for (std::int64_t c = 0; c < kColumns; ++c) EXPECT_EQ(dx.at(21, c), 0.0);
}

// Whatever rows hold that do not count, no number of theirs is read.
TEST(ReferenceLinearCrossEntropy, PaddingAndIgnoredRowsMayHoldAnything) {
  Loss clean(DType::f64);
  clean.scalars.valid_examples = 8;
  clean.labels.set(3, -100);
  Loss dirty = clean;
  for (const std::int64_t row : {std::int64_t{3}, 8 * kLength, kRows - 1}) {
    dirty.x.set(dirty.x.number_of({row, 2}), std::numeric_limits<double>::quiet_NaN());
    if (row != 3) dirty.labels.set(row, -123456);
  }
  const auto expected = clean.step(), got = dirty.step();
  for (std::size_t o = 0; o < 3; ++o) EXPECT_TRUE(got[o].same_bytes(expected[o])) << o;
  EXPECT_TRUE(dirty.metrics().same_bytes(clean.metrics()));
}

TEST(ReferenceLinearCrossEntropy, RowsThatAllDoNotCountHaveNoLossAndNoGradient) {
  Loss loss(DType::f32);
  loss.scalars.total_weight = 0;
  loss.labels = Tensor::random(loss.labels.type(), 3, -50, -1);
  const auto step = loss.step();
  for (const Tensor& output : step)
    EXPECT_EQ(output.logical(), std::vector<double>(static_cast<std::size_t>(output.elements()), 0.0));
}

TEST(ReferenceLinearCrossEntropy, HugeLogitsDoNotOverflowAndANumberThatIsNotFiniteReachesTheLoss) {
  Loss loss(DType::f32);
  loss.x = Tensor::random(loss.x.type(), 1, 1e18, 2e18);
  loss.weight = Tensor::random(loss.weight.type(), 1, -1e18, 1e18);
  EXPECT_TRUE(std::isfinite(loss.metrics()[0]));
  for (const Tensor& output : loss.step()) {
    for (std::int64_t i = 0; i < output.elements(); ++i) ASSERT_TRUE(std::isfinite(output[i]));
  }
  loss.weight.set(4, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(loss.metrics()[0]));
}

TEST(ReferenceLinearCrossEntropy, CountsRowsWhoseLargestLogitIsTheLabelTheFirstOfEquals) {
  Loss loss(DType::f32);
  // Logits are the row itself, once for each of the first classes; the others are 0 and smaller.
  loss.x = Tensor(loss.x.type(), std::vector<double>(kRows * kColumns, 1.0));
  loss.weight = Tensor(loss.weight.type(), std::vector<double>(kClasses * kColumns, 0.0));
  for (const std::int64_t v : {2, 5}) loss.weight.set(v * kColumns, 3.0);
  loss.labels = Tensor(loss.labels.type(), std::vector<double>(kRows, 5.0));
  EXPECT_EQ(loss.metrics()[1], 0.0);
  loss.labels = Tensor(loss.labels.type(), std::vector<double>(kRows, 2.0));
  EXPECT_EQ(loss.metrics()[1], kRows);
}

}  // namespace
}  // namespace snug::backends
