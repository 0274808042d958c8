// Updates rounded by chance: to one of the two neighbors, the nearer the likelier, the same however many threads share the work.
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/storage.h"
#include "backends/reference/support.h"
#include "ops/ops.h"
#include "ops/random_draws.h"

namespace snug::backends {
namespace {

constexpr std::int64_t kCount = 5003;  // not a multiple of anything
constexpr std::uint64_t kSeed = 42;

struct Update {
  DType dtype = DType::bf16;
  std::uint64_t step = 3;
  std::int64_t key = 7;
  int threads = 1;
  bool skip = false;
  bool stochastic = true;
};

struct Updated {
  Tensor weight, momentum;
};

// w - 0.1 m, where m = 0.5 m + g. Gradients come as what is wanted of m.
Updated run_update(const Update& update, const Tensor& weight, const Tensor& gradient, const Tensor& momentum) {
  Attributes attributes{{"momentum", 0.5}, {"weight_decay", 0.0}, {"nesterov", std::int64_t{0}}};
  if (update.stochastic) attributes.set("stochastic", std::int64_t{1});
  if (update.stochastic) attributes.set("key", update.key);
  std::vector<Tensor> inputs{
      weight, gradient,
      Tensor::scalars({.seed = kSeed, .step = update.step, .learning_rate = 0.1, .skip_update = std::uint16_t{update.skip}}),
      momentum};
  std::vector<Type> types;
  std::vector<Operand> operands;
  for (Tensor& input : inputs) {
    types.push_back(input.type());
    operands.push_back(input.operand());
  }
  std::vector<Tensor> outputs{Tensor(weight.type()), Tensor(weight.type()), Tensor(weight.type())};
  std::vector<Type> output_types(3, weight.type());
  std::vector<Operand> results;
  for (Tensor& output : outputs) results.push_back(output.operand());
  const Backend backend = cpu_backend(update.threads);
  Accept accept;
  const KernelDef* kernel = backend.choose(
      {.op = ops::sgd, .attributes = attributes, .inputs = types, .outputs = output_types, .threads = update.threads}, accept);
  EXPECT_EQ(kernel->name, "simd_sgd");
  kernel->bind({.attributes = attributes, .inputs = operands, .outputs = results, .workspace = {}, .threads = update.threads})
      ->run();
  for (const Tensor& output : outputs) EXPECT_TRUE(output.guards_intact());
  return {outputs[0], outputs[2]};
}

// One microbatch's gradient added to a momentum.
Tensor run_addition(const Tensor& momentum, const Tensor& gradient, std::uint64_t first_example, std::int64_t summand = 0,
                    int threads = 1) {
  const Attributes attributes{{"stochastic", std::int64_t{1}}, {"key", std::int64_t{7}}, {"summand", summand}};
  std::vector<Tensor> inputs{momentum, gradient, Tensor::scalars({.seed = kSeed, .step = 3, .first_example = first_example})};
  std::vector<Type> types;
  std::vector<Operand> operands;
  for (Tensor& input : inputs) {
    types.push_back(input.type());
    operands.push_back(input.operand());
  }
  Tensor sum(momentum.type());
  const std::vector<Type> output_types{sum.type()};
  const std::vector<Operand> results{sum.operand()};
  Accept accept;
  const KernelDef* kernel = cpu_backend(threads).choose(
      {.op = ops::momentum_add, .attributes = attributes, .inputs = types, .outputs = output_types, .threads = threads}, accept);
  kernel->bind({.attributes = attributes, .inputs = operands, .outputs = results, .workspace = {}, .threads = threads})->run();
  EXPECT_TRUE(sum.guards_intact());
  return sum;
}

Tensor all(DType dtype, double value) { return {{.dtype = dtype, .shape = {kCount}}, std::vector<double>(kCount, value)}; }

// What the numbers of 16 bits should be, one by one.
double expected(DType dtype, float value, std::uint32_t random) {
  if (dtype == DType::f16) return float_from_half(half_from_double(ops::stochastic_half(value, random)));
  return ops::stochastic_bfloat(value, random);
}

TEST(StochasticRounding, IsTheOneThatTheDrawsSay) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Type type{.dtype = dtype, .shape = {kCount}};
    // Large and small numbers, halves below the normal ones too.
    const double scale = dtype == DType::f16 ? 1e-4 : 1.0;
    for (const double size : {1.0, scale, scale * scale}) {
      const Tensor weight = Tensor::random(type, 1, -size, size), gradient = Tensor::random(type, 2, -size, size);
      const Updated updated = run_update({.dtype = dtype}, weight, gradient, all(dtype, 0));
      for (std::int64_t i = 0; i < kCount; ++i) {
        const std::uint32_t word = ops::rounding_word(kSeed, 3, 7, static_cast<std::uint64_t>(i));
        const auto m = static_cast<float>(gradient[i]);
        ASSERT_EQ(updated.momentum[i], expected(dtype, m, word >> 16U)) << name_of(dtype) << " " << i;
        const float w = std::fma(-0.1F, m, static_cast<float>(weight[i]));
        ASSERT_EQ(updated.weight[i], expected(dtype, w, word & 0xFFFFU)) << name_of(dtype) << " " << i;
      }
    }
  }
}

TEST(StochasticRounding, KeepsSmallUpdatesOnAverage) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const double step = dtype == DType::bf16 ? 0x1p-7 : 0x1p-10;  // from 1 to its neighbor above
    const Tensor one = all(dtype, 1), gradient = all(dtype, -step * 2);
    const Tensor nearest = run_update({.dtype = dtype, .stochastic = false}, one, gradient, all(dtype, 0)).weight;
    const Tensor random = run_update({.dtype = dtype}, one, gradient, all(dtype, 0)).weight;
    std::int64_t up = 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(nearest[i], 1.0);  // a fifth of a step is lost
      EXPECT_TRUE(random[i] == 1.0 || random[i] == 1.0 + step) << random[i];
      up += random[i] > 1.0 ? 1 : 0;
    }
    // A fifth goes up: 1000 of 5003 within five standard deviations.
    EXPECT_NEAR(static_cast<double>(up), 0.2 * kCount, 5 * std::sqrt(0.2 * 0.8 * kCount)) << name_of(dtype);
  }
}

TEST(StochasticRounding, OfAnAdditionToAMomentumIsDrawnAnewForEveryMicrobatchAndSummand) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Type type{.dtype = dtype, .shape = {kCount}};
    const Tensor momentum = Tensor::random(type, 1), gradient = Tensor::random(type, 2, -1e-3, 1e-3);
    std::vector<Tensor> sums;
    for (const auto& [first_example, summand] : {std::pair<std::uint64_t, std::int64_t>{0, 0}, {5, 0}, {5, 255}}) {
      sums.push_back(run_addition(momentum, gradient, first_example, summand));
      EXPECT_TRUE(run_addition(momentum, gradient, first_example, summand, 3).same_bytes(sums.back()));
      const std::uint64_t from = ops::first_rounded_element(first_example, static_cast<std::uint64_t>(summand));
      for (std::int64_t i = 0; i < kCount; ++i) {
        const std::uint32_t word = ops::rounding_word(kSeed, 3, 7, from + static_cast<std::uint64_t>(i));
        const float sum = static_cast<float>(momentum[i]) + static_cast<float>(gradient[i]);
        ASSERT_EQ(sums.back()[i], expected(dtype, sum, word >> 16U)) << name_of(dtype) << " " << i;
      }
    }
    EXPECT_FALSE(sums[0].same_bytes(sums[1]));
    EXPECT_FALSE(sums[1].same_bytes(sums[2]));
  }
}

TEST(StochasticRounding, ManySmallSummandsAddUpOnAverage) {
  Tensor sum = all(DType::bf16, 1);
  const Tensor gradient = all(DType::bf16, 0x1p-10);  // an eighth of the distance to the neighbor above
  for (std::uint64_t microbatch = 0; microbatch < 64; ++microbatch) sum = run_addition(sum, gradient, 2 * microbatch);
  double mean = 0;
  for (std::int64_t i = 0; i < kCount; ++i) mean += sum[i] / kCount;
  // Each goes up with a chance of an eighth: eight steps within five standard deviations of a mean.
  EXPECT_NEAR(mean, 1 + 8 * 0x1p-7, 0x1p-7 * 5 * std::sqrt(64 * 0.125 * 0.875 / kCount));
}

TEST(StochasticRounding, DependsOnSeedStepAndKeyButNotOnThreads) {
  const Type type{.dtype = DType::bf16, .shape = {kCount}};
  const Tensor weight = Tensor::random(type, 1), gradient = Tensor::random(type, 2), momentum = Tensor::random(type, 3);
  const Updated first = run_update({}, weight, gradient, momentum);
  for (const int threads : {1, 2, 3, 7}) {
    const Updated again = run_update({.threads = threads}, weight, gradient, momentum);
    EXPECT_TRUE(again.weight.same_bytes(first.weight) && again.momentum.same_bytes(first.momentum)) << threads;
  }
  EXPECT_FALSE(run_update({.step = 4}, weight, gradient, momentum).weight.same_bytes(first.weight));
  EXPECT_FALSE(run_update({.key = 8}, weight, gradient, momentum).weight.same_bytes(first.weight));
}

TEST(StochasticRounding, LeavesExactNumbersAndSkippedStepsAlone) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Tensor weight = all(dtype, 0);
    for (std::int64_t i = 0; i < kCount; ++i)
      weight.set(i, std::ldexp(static_cast<double>(i % 251 - 125), static_cast<int>(i % 13) - 10));
    weight.set(0, -0.0);
    const Updated still = run_update({.dtype = dtype}, weight, all(dtype, 0), all(dtype, 0));
    const Updated skipped = run_update({.dtype = dtype, .skip = true}, weight, all(dtype, 1), all(dtype, 0));
    for (std::int64_t i = 1; i < kCount; ++i) ASSERT_EQ(still.weight[i], weight[i]) << i;
    EXPECT_TRUE(skipped.weight.same_bytes(weight));
  }
}

TEST(StochasticRounding, LetsWhatIsNotFiniteStandOut) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const double value : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      const Updated infinite = run_update({.dtype = dtype}, all(dtype, 1), all(dtype, value), all(dtype, 0));
      EXPECT_EQ(infinite.momentum[17], value);
      EXPECT_EQ(infinite.weight[17], -value);
    }
    const Updated nan =
        run_update({.dtype = dtype}, all(dtype, std::numeric_limits<double>::quiet_NaN()), all(dtype, 0), all(dtype, 0));
    for (std::int64_t i = 0; i < kCount; ++i) ASSERT_TRUE(std::isnan(nan.weight[i])) << i;
  }
}

}  // namespace
}  // namespace snug::backends
