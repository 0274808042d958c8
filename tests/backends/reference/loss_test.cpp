#include <cmath>

#include "support.h"

namespace snug::backends {
namespace {

Attributes smoothing(double amount) { return {{"label_smoothing", amount}}; }

Tensor labels_of(const std::vector<double>& labels) {
  return {{.dtype = DType::i32, .shape = {static_cast<std::int64_t>(labels.size())}}, labels};
}

void expect_near(const Tensor& got, const std::vector<double>& expected) {
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    EXPECT_NEAR(got[i], expected[static_cast<std::size_t>(i)], got.type().dtype == DType::f32 ? 1e-7 : 1e-15) << i;
  }
}

TEST(ReferenceSoftmaxCrossEntropy, AgreesWithPyTorch) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor logits({.dtype = dtype, .shape = {2, 3}}, {1, -2, 0.5, 0.25, 0.75, 3});
    const std::vector<Tensor> inputs{logits, labels_of({2, 0}), Tensor::scalars({.valid_examples = 2, .total_weight = 2})};
    EXPECT_NEAR(run(ops::softmax_cross_entropy, inputs, smoothing(0))[0][0], 1.9555126726632703, 1e-15);
    EXPECT_NEAR(run(ops::softmax_cross_entropy, inputs, smoothing(0.1))[0][0], 1.9346793393299369, 1e-15);
    expect_near(run(ops::softmax_cross_entropy_grad, inputs, smoothing(0))[0],
                {0.3018744480743129, 0.015029443784787011, -0.3169038918590999, -0.47266467954742997, 0.04506832427155651,
                 0.4275963552758735});
    expect_near(run(ops::softmax_cross_entropy_grad, inputs, smoothing(0.1))[0],
                {0.28520778140764624, -0.001637222881879655, -0.28357055852576657, -0.43933134621409664, 0.028401657604889847,
                 0.4109296886092068});
  }
}

TEST(ReferenceSoftmaxCrossEntropy, CountsValidRowsWhoseLargestLogitIsTheLabel) {
  const Tensor logits({.dtype = DType::f32, .shape = {5, 3}}, {1, 2, 0,    // right
                                                               3, 2, 0,    // wrong
                                                               2, 2, 1,    // a tie: the first is the largest, so wrong
                                                               5, 5, 5,    // and here right
                                                               0, 0, 9});  // padding
  const Tensor metrics =
      run(ops::softmax_cross_entropy,
          {logits, labels_of({1, 1, 1, 0, 2}), Tensor::scalars({.valid_examples = 4, .total_weight = 8})}, smoothing(0))[0];
  EXPECT_EQ(metrics.type().dtype, DType::f64);
  EXPECT_EQ(metrics[1], 2.0);
  EXPECT_EQ(metrics[2], 4.0);
}

TEST(ReferenceSoftmaxCrossEntropy, PaddingWeighsNothingAndARowOneOverTheTotalWeight) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor logits = Tensor::random({.dtype = dtype, .shape = {3, 4}}, 1);
    const std::vector<double> labels{3, 0, 77};  // the padding's label is never read
    const Tensor scalars = Tensor::scalars({.valid_examples = 2, .total_weight = 10, .loss_scale = 8});
    double expected = 0;
    std::vector<double> gradient;
    for (std::int64_t n = 0; n < 3; ++n) {
      double total = 0;
      for (std::int64_t k = 0; k < 4; ++k) total += std::exp(logits.at(n, k));
      for (std::int64_t k = 0; k < 4; ++k) {
        const double probability = std::exp(logits.at(n, k)) / total;
        const bool is_label = labels[static_cast<std::size_t>(n)] == static_cast<double>(k);
        if (n < 2 && is_label) expected -= std::log(probability) / 10;
        gradient.push_back(n < 2 ? (probability - (is_label ? 1 : 0)) * 8 / 10 : 0);
      }
    }
    const Tensor metrics = run(ops::softmax_cross_entropy, {logits, labels_of(labels), scalars}, smoothing(0))[0];
    EXPECT_NEAR(metrics[0], expected, 1e-14);
    EXPECT_EQ(metrics[2], 2.0);
    const Tensor dlogits = run(ops::softmax_cross_entropy_grad, {logits, labels_of(labels), scalars}, smoothing(0))[0];
    expect_close(dlogits, gradient);
    for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(dlogits.at(2, k), 0.0);
  }
}

TEST(ReferenceSoftmaxCrossEntropy, BatchOfPaddingAloneHasNoLoss) {
  const Tensor logits = Tensor::random({.dtype = DType::f32, .shape = {2, 3}}, 1);
  const std::vector<Tensor> inputs{logits, labels_of({0, 0}), Tensor::scalars({.valid_examples = 0, .total_weight = 0})};
  EXPECT_EQ(run(ops::softmax_cross_entropy, inputs, smoothing(0.1))[0].logical(), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(run(ops::softmax_cross_entropy_grad, inputs, smoothing(0.1))[0].logical(), std::vector<double>(6, 0.0));
}

TEST(ReferenceSoftmaxCrossEntropy, HugeLogitsDoNotOverflow) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor logits({.dtype = dtype, .shape = {1, 2}}, {1e30, -1e30});
    const Tensor scalars = Tensor::scalars({.valid_examples = 1, .total_weight = 1});
    EXPECT_EQ(run(ops::softmax_cross_entropy, {logits, labels_of({0}), scalars}, smoothing(0))[0][0], 0.0);
    EXPECT_EQ(run(ops::softmax_cross_entropy_grad, {logits, labels_of({1}), scalars}, smoothing(0))[0].logical(),
              (std::vector<double>{1, -1}));
  }
}

TEST(ReferenceSoftmaxCrossEntropy, ImpossibleLabelMakesTheLossNaN) {
  const Tensor logits = Tensor::random({.dtype = DType::f32, .shape = {2, 3}}, 1);
  const Tensor scalars = Tensor::scalars({.valid_examples = 2, .total_weight = 2});
  for (const double label : {-1.0, 3.0}) {
    const Tensor metrics = run(ops::softmax_cross_entropy, {logits, labels_of({0, label}), scalars}, smoothing(0))[0];
    EXPECT_TRUE(std::isnan(metrics[0]));
    const Tensor gradient = run(ops::softmax_cross_entropy_grad, {logits, labels_of({0, label}), scalars}, smoothing(0))[0];
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_FALSE(std::isnan(gradient.at(0, k)));
      EXPECT_TRUE(std::isnan(gradient.at(1, k)));
    }
  }
}

}  // namespace
}  // namespace snug::backends
