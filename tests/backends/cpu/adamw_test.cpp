// AdamW with moments in 16 bits: how they are rounded, and that neither small ones nor large ones are lost.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/support.h"
#include "ops/ops.h"
#include "ops/random_draws.h"
#include "ops/updates/scaled_moments.h"

namespace snug::backends {
namespace {

constexpr std::int64_t kCount = 9001;  // several threads' parts; not a multiple of anything
constexpr std::uint64_t kSeed = 42;
constexpr float kRate = 0x1p-4F, kFirstDecay = 0.5F, kSecondDecay = 0.75F, kEpsilon = 0x1p-20F;

struct Update {
  bool stochastic = false;
  int threads = 1;
  double updates = 100;  // made so far: after so many, both corrections of the bias are 1 in floats
};

// Outputs of the op, whose moments come after the scalars.
std::vector<Tensor> run_update(const OpDef& op, const Tensor& weight, const Tensor& gradient, std::vector<Tensor> states,
                               const Update& update = {}) {
  Attributes attributes{{"beta1", static_cast<double>(kFirstDecay)},
                        {"beta2", static_cast<double>(kSecondDecay)},
                        {"epsilon", static_cast<double>(kEpsilon)},
                        {"weight_decay", 0.0}};
  if (update.stochastic) attributes.set("stochastic", std::int64_t{1});
  if (update.stochastic) attributes.set("key", std::int64_t{7});
  std::vector<Tensor> inputs{weight, gradient, Tensor::scalars({.seed = kSeed, .step = 3, .learning_rate = kRate})};
  for (Tensor& state : states) inputs.push_back(std::move(state));
  inputs.emplace_back(Type{.dtype = DType::f64, .shape = {1}}, std::vector<double>{update.updates});
  std::vector<Type> types;
  std::vector<Operand> operands, results;
  for (Tensor& input : inputs) {
    types.push_back(input.type());
    operands.push_back(input.operand());
  }
  const std::vector<Type> output_types = infer_types(op, {types, attributes});
  std::vector<Tensor> outputs(output_types.begin(), output_types.end());
  for (Tensor& output : outputs) results.push_back(output.operand());
  Accept accept;
  const KernelDef* kernel =
      cpu_backend(update.threads)
          .choose({.op = op, .attributes = attributes, .inputs = types, .outputs = output_types, .threads = update.threads},
                  accept);
  EXPECT_EQ(kernel->name, "simd_" + std::string(op.name));
  std::vector<std::byte> workspace(static_cast<std::size_t>(accept.workspace.count()));
  kernel
      ->bind(
          {.attributes = attributes, .inputs = operands, .outputs = results, .workspace = workspace, .threads = update.threads})
      ->run();
  for (const Tensor& output : outputs) EXPECT_TRUE(output.guards_intact());
  return outputs;
}

Tensor tensor(DType dtype, std::uint64_t seed, double low, double high) {
  return Tensor::random({.dtype = dtype, .shape = {kCount}}, seed, low, high);
}
Tensor zeros(DType dtype) { return {{.dtype = dtype, .shape = {kCount}}, std::vector<double>(kCount, 0)}; }
Tensor scales(double first, double second) { return {{.dtype = DType::f32, .shape = {2}}, {first, second}}; }

// An element's step in floats, one rounding per operation.
struct Step {
  float weight, first, second;

  Step(double w, double g, double m, double v) {
    const auto gradient = static_cast<float>(g);
    first = kFirstDecay * static_cast<float>(m) + (1 - kFirstDecay) * gradient;
    second = kSecondDecay * static_cast<float>(v) + (1 - kSecondDecay) * gradient * gradient;
    weight = static_cast<float>(w) - kRate * (first / (std::sqrt(second) + kEpsilon));
  }
};

double rounded(DType dtype, float value, std::uint32_t random) {
  if (dtype == DType::f32) return value;
  if (dtype == DType::f16) return float_from_half(half_from_double(ops::stochastic_half(value, random)));
  return ops::stochastic_bfloat(value, random);
}

std::uint32_t word_of(std::int64_t element) { return ops::rounding_word(kSeed, 3, 7, static_cast<std::uint64_t>(element)); }

TEST(Adamw, RoundsAWeightByTheLowerHalfOfADrawAndBothMomentsByTheUpper) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const DType moments : {dtype, DType::f32}) {
      const Tensor w = tensor(dtype, 1, -1, 1), g = tensor(dtype, 2, -1, 1);
      const Tensor m = tensor(moments, 3, -1, 1), v = tensor(moments, 4, 0, 1);
      const std::vector<Tensor> moved = run_update(ops::adamw, w, g, {m, v}, {.stochastic = true});
      for (std::int64_t i = 0; i < kCount; ++i) {
        const Step step(w[i], g[i], m[i], v[i]);
        const std::uint32_t word = word_of(i);
        ASSERT_EQ(moved[0][i], rounded(dtype, step.weight, word & 0xFFFFU)) << name_of(dtype) << " " << i;
        ASSERT_EQ(moved[2][i], rounded(moments, step.first, word >> 16U)) << name_of(dtype) << " " << i;
        ASSERT_EQ(moved[3][i], rounded(moments, step.second, word >> 16U)) << name_of(dtype) << " " << i;
      }
    }
  }
}

TEST(ScaledAdamw, StoresMomentsUnderAScaleThatTheLargestDecides) {
  const double first_scale = 0x1p-20, second_scale = 0x1p-30;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool stochastic : {false, true}) {
      const Tensor w = tensor(dtype, 1, -1, 1), g = tensor(dtype, 2, -1e-2, 1e-2);
      const Tensor m = tensor(DType::f16, 3, -30000, 30000), v = tensor(DType::f16, 4, 0, 30000);
      const std::vector<Tensor> moved =
          run_update(ops::adamw_scaled, w, g, {m, v, scales(first_scale, second_scale)}, {.stochastic = stochastic});
      std::vector<Step> steps;
      float first = 0, second = 0;
      for (std::int64_t i = 0; i < kCount; ++i) {
        steps.emplace_back(w[i], g[i], m[i] * first_scale, v[i] * second_scale);
        first = std::max(first, std::abs(steps.back().first));
        second = std::max(second, steps.back().second);
      }
      const double new_first = moved[4][0], new_second = moved[4][1];
      EXPECT_TRUE(first / new_first >= 0x1p14 && first / new_first < 0x1p15) << first << " in " << new_first;
      EXPECT_TRUE(second / new_second >= 0x1p14 && second / new_second < 0x1p15) << second << " in " << new_second;
      for (std::int64_t i = 0; i < kCount; ++i) {
        const Step& step = steps[static_cast<std::size_t>(i)];
        const std::uint32_t word = word_of(i);
        const auto stored = [&](float moment, double scale) {
          const auto number = static_cast<float>(moment / scale);
          return stochastic ? rounded(DType::f16, number, word >> 16U) : float_from_half(half_from_double(number));
        };
        ASSERT_EQ(moved[2][i], stored(step.first, new_first)) << i;
        ASSERT_EQ(moved[3][i], stored(step.second, new_second)) << i;
        if (dtype == DType::f32 || stochastic) {
          ASSERT_EQ(moved[0][i], rounded(dtype, step.weight, word & 0xFFFFU)) << i;
        }
        ASSERT_EQ(moved[1][i], 0);
      }
    }
  }
}

// Gradients of one tensor that differ by eight orders of magnitude: rounded to zero, the squares of the smallest would make steps
// of m / epsilon, thousands of times the learning rate.
TEST(ScaledAdamw, ASecondMomentThatIsAboveZeroStaysAboveZero) {
  for (const bool stochastic : {false, true}) {
    Tensor g = zeros(DType::f32);
    for (std::int64_t i = 0; i < kCount; ++i) g.set(i, i % 10 == 9 ? 0 : std::pow(10.0, 6 - i % 10));
    std::vector<Tensor> moved = run_update(ops::adamw_scaled, zeros(DType::f32), g,
                                           {zeros(DType::f16), zeros(DType::f16), scales(0, 0)}, {.stochastic = stochastic});
    for (int step = 0; step < 30; ++step) {
      moved =
          run_update(ops::adamw_scaled, moved[0], zeros(DType::f32), {moved[2], moved[3], moved[4]}, {.stochastic = stochastic});
    }
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(moved[3][i] > 0, i % 10 != 9) << g[i];
      // 31 steps of at most about sqrt(1 - beta1) / sqrt(1 - beta2) each, and none of m / epsilon.
      ASSERT_LE(std::abs(moved[0][i]), 31 * kRate * 2) << g[i];
    }
  }
}

TEST(ScaledAdamw, WhatIsNotFiniteStandsOutAndSaysNothingAboutTheScales) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor g = tensor(DType::f32, 2, 0.5, 1), with_others = g;
  with_others.set(3, infinity);
  with_others.set(4097, std::numeric_limits<double>::quiet_NaN());
  const auto moved_by = [&](const Tensor& gradient) {
    return run_update(ops::adamw_scaled, zeros(DType::f32), gradient, {zeros(DType::f16), zeros(DType::f16), scales(0, 0)});
  };
  const std::vector<Tensor> plain = moved_by(g), others = moved_by(with_others);
  EXPECT_TRUE(plain[4].same_bytes(others[4]));
  EXPECT_EQ(others[2][3], infinity);
  EXPECT_EQ(others[3][3], infinity);
  for (const std::size_t output : {0, 2, 3}) {
    EXPECT_TRUE(std::isnan(others[output][4097])) << output;
    EXPECT_EQ(others[output][4098], plain[output][4098]) << output;
  }
}

TEST(ScaledAdamw, HasTheSameBitsOnAnyNumberOfThreads) {
  const Tensor w = tensor(DType::bf16, 1, -1, 1), g = tensor(DType::bf16, 2, -1, 1);
  const Tensor m = tensor(DType::f16, 3, -30000, 30000), v = tensor(DType::f16, 4, 0, 30000);
  const auto moved = [&](int threads) {
    return run_update(ops::adamw_scaled, w, g, {m, v, scales(0x1p-15, 0x1p-14)}, {.stochastic = true, .threads = threads});
  };
  const std::vector<Tensor> one = moved(1);
  for (const int threads : {2, 3, 7}) {
    const std::vector<Tensor> several = moved(threads);
    for (std::size_t o = 0; o < one.size(); ++o) EXPECT_TRUE(several[o].same_bytes(one[o])) << threads << " " << o;
  }
}

}  // namespace
}  // namespace snug::backends
