#include <cmath>
#include <limits>

#include "support.h"

namespace snug::backends {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kOne = 1;

void expect_near(const Tensor& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.elements(), static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double want = expected[static_cast<std::size_t>(i)];
    EXPECT_NEAR(got[i], want, (got.type().dtype == DType::f32 ? 1e-7 : 1e-15) * (1 + std::abs(want))) << i;
  }
}

Tensor indices_of(const std::vector<double>& indices) {
  return {{.dtype = DType::i32, .shape = {static_cast<std::int64_t>(indices.size())}}, indices};
}

template <typename Body>
void for_f32_and_f64(const Body& body) {
  for (const DType dtype : {DType::f32, DType::f64}) body(dtype);
}

TEST(ReferenceEmbedding, TakesRowsOfTheTableAndZerosWhereThereIsNone) {
  for_f32_and_f64([](DType dtype) {
    const Tensor table({.dtype = dtype, .shape = {3, 2}}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(run(ops::embedding, {indices_of({2, 0, 3, -1, 2147483647, 2}), table})[0].logical(),
              (std::vector<double>{5, 6, 1, 2, 0, 0, 0, 0, 0, 0, 5, 6}));
  });
}

TEST(ReferenceEmbedding, GradientIsTheSumOverTheRowsOfAnIndex) {
  for_f32_and_f64([](DType dtype) {
    const Tensor dy({.dtype = dtype, .shape = {5, 2}}, {1, 2, 10, 20, 100, 200, 1000, 2000, 10000, 20000});
    EXPECT_EQ(run(ops::embedding_grad, {indices_of({2, 0, -100, 2, 4}), dy}, {{"rows", kOne * 4}})[0].logical(),
              (std::vector<double>{10, 20, 0, 0, 1001, 2002, 0, 0}));
  });
}

TEST(ReferenceAddPositions, AddsTheRowOfThePositionInTheExample) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {4, 1}}, {1, 2, 3, 4}), table({.dtype = dtype, .shape = {3, 1}}, {10, 20, 30});
    const Attributes attributes{{"rows_per_example", kOne * 2}};
    EXPECT_EQ(run(ops::add_positions, {x, table}, attributes)[0].logical(), (std::vector<double>{11, 22, 13, 24}));
    EXPECT_EQ(run(ops::add_positions, {x, table})[0].logical(), (std::vector<double>{11, 12, 13, 14}));
    EXPECT_EQ(run(ops::add_positions_grad, {x}, {{"rows_per_example", kOne * 2}, {"positions", kOne * 3}})[0].logical(),
              (std::vector<double>{4, 6, 0}));
  });
}

TEST(ReferenceLayerNorm, NormalizesEachRowThenScalesAndShifts) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {2, 3}}, {1, 2, 4, 7, 7, 7});
    const Tensor weight({.dtype = dtype, .shape = {3}}, {1, 2, -1}), bias({.dtype = dtype, .shape = {3}}, {0, 10, 100});
    const auto outputs = run(ops::layer_norm, {x, weight, bias}, {{"epsilon", 0.5}});
    expect_near(outputs[0], {-0.9299811099505544, 10 - 2 * 0.23249527748763868, 100 - 1.1624763874381927, 0, 10, 100});
    expect_near(outputs[1], {2.3333333333333335, 7});
    expect_near(outputs[2], {0.6974858324629157, 1.4142135623730951});
  });
}

TEST(ReferenceRmsNorm, DividesEachRowByItsRootMeanSquare) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {2, 3}}, {1, 2, 4, 0, 0, 0}), weight({.dtype = dtype, .shape = {3}}, {1, 2, -1});
    const auto outputs = run(ops::rms_norm, {x, weight}, {{"epsilon", 0.5}});
    expect_near(outputs[0], {0.3651483716701107, 2 * 0.7302967433402214, -1.4605934866804429, 0, 0, 0});
    expect_near(outputs[1], {0.3651483716701107, 1.4142135623730951});
  });
}

TEST(ReferenceSilu, IsXTimesTheLogisticFunctionOfX) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {5}}, {0, 1, -1, -20, 800});
    expect_near(run(ops::silu, {x})[0], {0, 0.7310585786300049, -0.2689414213699951, -4.122307236380407e-08, 800});
  });
}

TEST(ReferenceSilu, FarFromZeroItsSlopeIsZeroOrOneAndAnOverflowStaysVisible) {
  const Tensor x({.dtype = DType::f64, .shape = {4}}, {-800, 800, -1e300, kInfinity});
  const Tensor ones({.dtype = DType::f64, .shape = {4}}, {1, 1, 1, 1});
  const Tensor slope = run(ops::silu_grad, {ones, x})[0];
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(slope[i], i == 1 ? 1 : 0) << i;
  EXPECT_TRUE(std::isnan(slope[3]));
  EXPECT_TRUE(std::isnan(run(ops::silu, {Tensor({.dtype = DType::f64, .shape = {1}}, {-kInfinity})})[0][0]));
}

TEST(ReferenceGatedLinearUnit, TheFirstHalfOfTheColumnsGatesTheSecond) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {2, 4}}, {1, -1, 10, 100, 0, 3, 5, 7}),
        dy = Tensor::random({.dtype = dtype, .shape = {2, 2}}, 1);
    const Tensor gates({.dtype = dtype, .shape = {2, 2}}, {1, -1, 0, 3}),
        factors({.dtype = dtype, .shape = {2, 2}}, {10, 100, 5, 7});
    const auto expect = [&](std::int64_t activation, const std::vector<double>& gated) {
      const Attributes attributes{{"activation", activation}};
      std::vector<double> expected, of_factors;
      for (std::int64_t i = 0; i < 4; ++i) {
        expected.push_back(gated[static_cast<std::size_t>(i)] * factors[i]);
        of_factors.push_back(gated[static_cast<std::size_t>(i)] * dy[i]);
      }
      expect_near(run(ops::gated_linear_unit, {x}, attributes)[0], expected);
      const Tensor dx = run(ops::gated_linear_unit_grad, {dy, x}, attributes)[0];
      expect_near(Tensor(dy.type(), {dx.at(0, 2), dx.at(0, 3), dx.at(1, 2), dx.at(1, 3)}), of_factors);
    };
    expect(0, {0.7310585786300049, 0.2689414213699951, 0.5, 0.9525741268224334});
    expect(1, {0.7310585786300049, -0.2689414213699951, 0, 2.8577223804673});
    expect(2, run(ops::gelu, {gates.as({.dtype = DType::f64, .shape = {2, 2}})}, {{"tanh", kOne}})[0].logical());
  });
}

TEST(ReferenceRotary, TurnsPairsOfBothHalvesOfAHeadByTheirPosition) {
  for_f32_and_f64([](DType dtype) {
    // Two examples of three positions; a column behind the head stays.
    std::vector<double> rows;
    for (int r = 0; r < 6; ++r) rows.insert(rows.end(), {1, 2, 3, 4, 9});
    const Tensor x({.dtype = dtype, .shape = {6, 5}}, rows);
    Attributes attributes{
        {"heads", kOne}, {"head_size", kOne * 4}, {"base", 10000.0}, {"rows_per_example", kOne * 3}, {"inverse", kOne * 0}};
    // The second pair turns by 0.01 rounded to f32, in f64 too.
    const std::vector<double> example{1,
                                      2,
                                      3,
                                      4,
                                      9,
                                      -1.9841106485555495,
                                      1.959900668395159,
                                      2.4623779024123156,
                                      4.019799667896923,
                                      9,
                                      -3.1440391170241875,
                                      1.9196053483654851,
                                      -0.33914308281574557,
                                      4.039197359194847,
                                      9};
    std::vector<double> expected = example;
    expected.insert(expected.end(), example.begin(), example.end());
    const Tensor y = run(ops::rotary, {x}, attributes)[0];
    expect_near(y, expected);
    attributes.set("inverse", kOne);
    const Tensor back = run(ops::rotary, {y}, attributes)[0];
    for (std::int64_t i = 0; i < x.elements(); ++i) EXPECT_NEAR(back[i], x[i], dtype == DType::f32 ? 1e-6 : 1e-14) << i;
  });
}

// Two examples of three rows, two heads of one column each; the tap of 1 says where each kernel looks.
TEST(ReferenceLightweightConv, TheColumnsOfAHeadShareAKernelAndNothingLeaksBetweenExamples) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {6, 2}}, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
    const Tensor weight({.dtype = dtype, .shape = {2, 3}}, {1, 0, 2, 0, 1, 0.5});
    Attributes attributes{{"heads", kOne * 2}, {"kernel", kOne * 3}, {"causal", kOne}, {"rows_per_example", kOne * 3}};
    EXPECT_EQ(run(ops::lightweight_conv, {x, weight}, attributes)[0].logical(),
              (std::vector<double>{2, 5, 4, 20, 7, 35, 8, 20, 10, 65, 16, 80}));
    EXPECT_EQ(run(ops::lightweight_conv_grad_input, {x, weight}, attributes)[0].logical(),
              (std::vector<double>{5, 25, 4, 40, 6, 15, 14, 70, 10, 85, 12, 30}));
    EXPECT_EQ(run(ops::lightweight_conv_grad_weight, {x, x}, attributes)[0].logical(),
              (std::vector<double>{27, 58, 91, 2700, 5800, 9100}));
    attributes.set("causal", kOne * 0);
    EXPECT_EQ(run(ops::lightweight_conv, {x, weight}, attributes)[0].logical(),
              (std::vector<double>{4, 20, 7, 35, 2, 30, 10, 65, 16, 80, 5, 60}));
  });
}

TEST(ReferenceDynamicConv, EachRowHasKernelsOfItsOwn) {
  for_f32_and_f64([](DType dtype) {
    // One head of two columns.
    const Tensor x({.dtype = dtype, .shape = {4, 2}}, {1, 10, 2, 20, 3, 30, 4, 40});
    const Tensor weight({.dtype = dtype, .shape = {4, 2}}, {7, 1, 1, 0, 7, 2, 1, 1});
    const Attributes attributes{{"heads", kOne}, {"kernel", kOne * 2}, {"causal", kOne}, {"rows_per_example", kOne * 2}};
    EXPECT_EQ(run(ops::dynamic_conv, {x, weight}, attributes)[0].logical(), (std::vector<double>{1, 10, 1, 10, 6, 60, 7, 70}));
    EXPECT_EQ(run(ops::dynamic_conv_grad_input, {x, weight}, attributes)[0].logical(),
              (std::vector<double>{3, 30, 0, 0, 10, 100, 4, 40}));
    EXPECT_EQ(run(ops::dynamic_conv_grad_weight, {x, x}, attributes)[0].logical(),
              (std::vector<double>{0, 101, 202, 404, 0, 909, 1212, 1616}));
  });
}

TEST(ReferenceSoftmax, OfEachRowSumsToOneHoweverLargeItsNumbers) {
  for_f32_and_f64([](DType dtype) {
    const Tensor x({.dtype = dtype, .shape = {2, 1, 3}}, {1, 2, 3, 1e30, 1e30, -1e30});
    const Tensor y = run(ops::softmax, {x})[0];
    expect_near(y, {0.09003057317038046, 0.24472847105479767, 0.6652409557748219, 0.5, 0.5, 0});
    const Tensor dy({.dtype = dtype, .shape = {2, 1, 3}}, {1, 0, 0, 2, 0, 5});
    expect_near(run(ops::softmax_grad, {dy, Tensor(y.type(), {0.25, 0.25, 0.5, 0.5, 0.5, 0})})[0],
                {0.1875, -0.0625, -0.125, 0.5, -0.5, 0});
  });
}

TEST(ReferenceBatchedProduct, TransposedFactorsLieTheOtherWayAround) {
  for_f32_and_f64([](DType dtype) {
    const Tensor a({.dtype = dtype, .shape = {2, 1, 2}}, {1, 2, 3, 4}),
        b({.dtype = dtype, .shape = {2, 2, 3}}, {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 1, 2});
    const std::vector<double> expected{9, 12, 15, 3, 4, 8};
    const Tensor a_transposed({.dtype = dtype, .shape = {2, 2, 1}}, {1, 2, 3, 4});
    const Tensor b_transposed({.dtype = dtype, .shape = {2, 3, 2}}, {1, 4, 2, 5, 3, 6, 1, 0, 0, 1, 0, 2});
    for (const std::int64_t ta : {0, 1}) {
      for (const std::int64_t tb : {0, 1}) {
        const Tensor y = run(ops::batched_product, {ta == 1 ? a_transposed : a, tb == 1 ? b_transposed : b},
                             {{"transpose_a", ta}, {"transpose_b", tb}})[0];
        EXPECT_EQ(y.logical(), expected) << ta << tb;
      }
    }
  });
}

}  // namespace
}  // namespace snug::backends
