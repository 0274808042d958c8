// Linear layers of 16 bits whose weight is made floats a tile at a time: several tiles, and a last one that is smaller.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/support.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

constexpr std::int64_t kBatch = 3, kIn = 9000, kOut = 50;

class HalfLinear : public testing::TestWithParam<DType> {
 protected:
  static Tensor random(Shape shape, std::uint64_t seed) { return Tensor::random({.dtype = GetParam(), .shape = shape}, seed); }

  static Tensor in_double(const Tensor& tensor) {
    Type type = tensor.type();
    type.dtype = DType::f64;
    return tensor.as(type);
  }

  // What the kernel called half_<op> gives.
  static std::vector<double> run_half(const OpDef& op, std::vector<Tensor> inputs, const Attributes& attributes) {
    const Backend backend = cpu_backend(2);
    const KernelDef* kernel = backend.find("half_" + std::string(op.name));
    std::vector<Type> types;
    std::vector<Operand> operands;
    for (Tensor& input : inputs) {
      types.push_back(input.type());
      operands.push_back(input.operand());
    }
    const std::vector<Type> outputs = infer_types(op, {types, attributes});
    const KernelMatch match =
        kernel->match({.op = op, .attributes = attributes, .inputs = types, .outputs = outputs, .threads = 2});
    const auto* accept = std::get_if<Accept>(&match);
    if (accept == nullptr) throw std::runtime_error(std::get<Refuse>(match).reason);
    EXPECT_LT(accept->workspace.count(), 4 * kIn * kOut) << "the weight as floats";
    Tensor result(outputs[0]);
    Tensor workspace({.dtype = DType::u8, .shape = {accept->workspace.count()}});
    std::vector<Operand> results{result.operand()};
    kernel
        ->bind({.attributes = attributes,
                .inputs = operands,
                .outputs = results,
                .workspace = {workspace.data(), static_cast<std::size_t>(accept->workspace.count())},
                .threads = 2})
        ->run();
    EXPECT_TRUE(result.guards_intact() && workspace.guards_intact());
    return result.logical();
  }

  static void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
    const double half_step = GetParam() == DType::bf16 ? 0x1p-9 : 0x1p-12;
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 2e-6 * largest + 2 * half_step * std::abs(expected[i])) << "element " << i;
  }
};

TEST_P(HalfLinear, GivesTheLayer) {
  const Tensor x = random({kBatch, kIn}, 1), weight = random({kOut, kIn}, 2), bias = random({kOut}, 3);
  expect_near(run_half(ops::linear, {x, weight, bias}, {}),
              run(ops::linear, {in_double(x), in_double(weight), in_double(bias)}, {})[0].logical());
}

TEST_P(HalfLinear, GivesTheDataGradient) {
  const Tensor dy = random({kBatch, kOut}, 1), weight = random({kOut, kIn}, 2);
  expect_near(run_half(ops::linear_grad_input, {dy, weight}, {}),
              run(ops::linear_grad_input, {in_double(dy), in_double(weight)}, {})[0].logical());
}

TEST_P(HalfLinear, GivesTheWeightGradientAndAddsItAfterRounding) {
  const Tensor dy = random({kBatch, kOut}, 1), x = random({kBatch, kIn}, 2), sum = random({kOut, kIn}, 3);
  const std::vector<double> alone = run_half(ops::linear_grad_weight, {dy, x}, {});
  expect_near(alone, run(ops::linear_grad_weight, {in_double(dy), in_double(x)}, {})[0].logical());
  Attributes adding;
  adding.set(kAccumulate, std::int64_t{1});
  const std::vector<double> added = run_half(ops::linear_grad_weight, {dy, x, sum}, adding);
  Tensor expected(sum.type());
  for (std::int64_t i = 0; i < sum.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    expected.set(i, static_cast<float>(sum[i]) + static_cast<float>(alone[at]));
    ASSERT_EQ(added[at], expected[i]) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Stored, HalfLinear, testing::Values(DType::bf16, DType::f16),
                         [](const auto& stored) { return std::string(name_of(stored.param)); });

}  // namespace
}  // namespace snug::backends
