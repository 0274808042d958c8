// The classifier with its loss: the same bits on any number of threads, and rows that do not count.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "backends/cpu/run_on_cpu.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

constexpr std::string_view kStep = "onednn_linear_cross_entropy_step_";
constexpr std::array<std::string_view, 6> kVariants{"summed_1024", "summed_256", "summed_64",
                                                    "twice_256",   "twice_64",   "twice_16"};

constexpr std::int64_t kRows = 1090, kColumns = 40, kClasses = 150, kLength = 10;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class CpuLinearCrossEntropy : public testing::TestWithParam<DType> {
 protected:
  Tensor x = Tensor::random({.dtype = GetParam(), .shape = {kRows, kColumns}}, 1);
  Tensor weight = Tensor::random({.dtype = GetParam(), .shape = {kClasses, kColumns}}, 2);
  Tensor labels = Tensor::random({.dtype = DType::i32, .shape = {kRows}}, 3, 0, kClasses);
  Scalars scalars{.valid_examples = kRows / kLength, .total_weight = 1000, .loss_scale = 64};
  Attributes attributes{{"label_smoothing", 0.1}, {"rows_per_example", kLength}};

  std::vector<Tensor> inputs() const { return {x, weight, labels, Tensor::scalars(scalars)}; }
  std::optional<std::vector<Tensor>> step(std::string_view variant, int threads = 2) const {
    return run_by(std::string(kStep) + std::string(variant), ops::linear_cross_entropy_step, inputs(), attributes, threads);
  }
  static bool is_finite(const Tensor& tensor) {
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      if (!std::isfinite(tensor[i])) return false;
    }
    return true;
  }
};

TEST_P(CpuLinearCrossEntropy, AnyNumberOfThreadsGivesTheSameBits) {
  for (const std::string_view variant : kVariants) {
    const auto by_one = step(variant, 1);
    ASSERT_TRUE(by_one.has_value()) << variant;
    for (const int threads : {2, 5}) {
      const auto by_more = step(variant, threads);
      for (std::size_t i = 0; i < by_one->size(); ++i)
        EXPECT_TRUE((*by_more)[i].same_bytes((*by_one)[i])) << variant << ", output " << i << ", " << threads << " threads";
    }
  }
}

TEST_P(CpuLinearCrossEntropy, TheLossAloneIsThatOfTheStep) {
  for (const auto& [loss, with_gradients] : {std::pair("1024", "summed_1024"), {"256", "twice_256"}, {"16", "twice_16"}}) {
    const auto alone =
        run_by(std::string("onednn_linear_cross_entropy_") + loss, ops::linear_cross_entropy, inputs(), attributes, 2);
    ASSERT_TRUE(alone.has_value());
    EXPECT_TRUE((*alone)[0].same_bytes((*step(with_gradients))[2])) << loss;
  }
}

// 0 times NaN would be NaN.
TEST_P(CpuLinearCrossEntropy, NothingOfARowThatDoesNotCountComesIntoASum) {
  scalars.valid_examples = kRows / kLength - 1;
  const std::vector<std::int64_t> ignored{5, 700, kRows - 1};
  labels.set(5, -100);
  labels.set(700, kClasses);  // the last is padding
  for (const std::int64_t row : ignored) {
    for (std::int64_t c = 0; c < kColumns; ++c) x.set(row * kColumns + c, 0);
  }
  std::vector<std::vector<Tensor>> expected;
  for (const std::string_view variant : kVariants) expected.push_back(*step(variant));
  for (const std::int64_t row : ignored) {
    for (std::int64_t c = 0; c < kColumns; ++c) x.set(row * kColumns + c, c % 2 == 0 ? kNan : HUGE_VAL);
  }
  for (std::size_t i = 0; i < kVariants.size(); ++i) {
    const std::vector<Tensor> made = *step(kVariants[i]);
    for (std::size_t o = 0; o < made.size(); ++o) {
      EXPECT_TRUE(is_finite(made[o])) << kVariants[i] << ", output " << o;
      EXPECT_TRUE(made[o].same_bytes(expected[i][o])) << kVariants[i] << ", output " << o;
    }
  }
}

TEST_P(CpuLinearCrossEntropy, ANanOfARowThatCountsIsSeenEverywhereItGoes) {
  constexpr std::int64_t kRow = 70;
  x.set(kRow * kColumns + 3, kNan);
  for (const std::string_view variant : kVariants) {
    const std::vector<Tensor> made = *step(variant);
    EXPECT_TRUE(std::isnan(made[0][3])) << variant;  // of the weight, class 0
    for (std::int64_t row = 0; row < kRows; ++row)
      EXPECT_EQ(std::isnan(made[1][row * kColumns + 7]), row == kRow) << variant << ", row " << row;
    EXPECT_TRUE(std::isnan(made[2][0])) << variant;
  }
}

TEST_P(CpuLinearCrossEntropy, FewerRowsAtATimeNeedLessWorkspace) {
  const Tensor wide_x({.dtype = GetParam(), .shape = {2050, 64}}), wide_weight({.dtype = GetParam(), .shape = {16000, 64}});
  const CpuCall call(ops::linear_cross_entropy_step,
                     {wide_x, wide_weight, Tensor({.dtype = DType::i32, .shape = {2050}}), Tensor::scalars({})}, attributes, 2);
  const Backend backend = cpu_backend(2);
  Bytes before(std::numeric_limits<std::int64_t>::max());
  double slowdown = 0;
  for (const std::string_view variant : {"summed_1024", "summed_256", "twice_256", "twice_64", "twice_16"}) {
    const KernelMatch match = backend.find(std::string(kStep) + std::string(variant))->match(call.query());
    const auto& accept = std::get<Accept>(match);
    if (GetParam() != DType::f32 || variant != "twice_256") {
      EXPECT_LT(accept.workspace, before) << variant;
      before = accept.workspace;
    }
    EXPECT_GE(accept.slowdown, slowdown) << variant;
    slowdown = accept.slowdown;
  }
  EXPECT_LT(before, Bytes(8 << 20));
}

INSTANTIATE_TEST_SUITE_P(Stored, CpuLinearCrossEntropy, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

}  // namespace
}  // namespace snug::backends
