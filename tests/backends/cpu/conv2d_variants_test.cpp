// A convolution and its gradients by every kernel that makes them: they may sum in another order, but not much else, and what
// needs less workspace must get by with it.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/support.h"
#include "ops/conv2d.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

struct Shapes {
  Shape input, weight;
  std::int64_t stride = 1, padding = 1;
};

const std::vector<Shapes>& all_shapes() {
  static const std::vector<Shapes> shapes{{.input = {5, 32, 9, 7}, .weight = {64, 32, 3, 3}},
                                          {.input = {3, 128, 4, 4}, .weight = {128, 128, 3, 3}},
                                          {.input = {7, 64, 8, 8}, .weight = {128, 64, 3, 3}, .stride = 2},
                                          {.input = {2, 128, 5, 5}, .weight = {256, 128, 1, 1}, .padding = 0},
                                          {.input = {4, 256, 6, 6}, .weight = {128, 256, 1, 1}, .stride = 2, .padding = 0},
                                          {.input = {23, 32, 16, 16}, .weight = {32, 32, 3, 3}},
                                          // The last block of output channels is padded, and images are large beside the weight.
                                          {.input = {3, 32, 16, 16}, .weight = {24, 32, 3, 3}},
                                          {.input = {3, 32, 16, 16}, .weight = {40, 32, 3, 3}}};
  return shapes;
}

// One product of a convolution whose weights lie as the backend likes them best.
class Products {
 public:
  Products(const Shapes& shapes, int threads, DType dtype = DType::f32) : threads_(threads), backend_(cpu_backend(threads)) {
    attributes_ = {{"stride", Integers{shapes.stride, shapes.stride}},
                   {"padding", Integers{shapes.padding, shapes.padding}},
                   {"dilation", Integers{1, 1}},
                   {"groups", std::int64_t{1}}};
    x_ = {.dtype = dtype, .shape = shapes.input, .layout = Layout::channels_last()};
    plain_weight_ = {.dtype = dtype, .shape = shapes.weight};
    const std::vector<Type> inputs{x_, plain_weight_};
    const std::vector<Type> outputs = infer_types(ops::conv2d, {inputs, attributes_});
    dy_ = outputs[0];
    weight_ = plain_weight_;
    const auto layout = backend_.preferred_weight_layout(
        {.op = ops::conv2d, .attributes = attributes_, .inputs = inputs, .outputs = outputs, .threads = threads});
    if (layout) weight_.layout = *layout;
  }
  bool has_own_layout() const { return weight_ != plain_weight_; }

  Attributes for_input() const {
    Attributes attributes = attributes_;
    attributes.set("input_shape", Integers(x_.shape.dims().begin(), x_.shape.dims().end()));
    return attributes;
  }
  Attributes for_weight() const {
    Attributes attributes = attributes_;
    attributes.set("kernel", Integers{weight_.shape[2], weight_.shape[3]});
    return attributes;
  }

  struct Outcome {
    Bytes workspace;
    std::string_view numerics;
    std::vector<double> values;  // in logical order
  };

  std::optional<Outcome> forward(const KernelDef& kernel) {
    return run(kernel, ops::conv2d, {x(), opaque(weights())}, dy_, attributes_);
  }
  // Nothing when the kernel refuses. `sum`: what the weight gradient is added to, in logical order.
  std::optional<Outcome> grad_input(const KernelDef& kernel) {
    return run(kernel, ops::conv2d_grad_input, {dy(), opaque(weights())}, x_, for_input());
  }
  std::optional<Outcome> grad_weight(const KernelDef& kernel, const Tensor* sum = nullptr) {
    Attributes attributes = for_weight();
    std::vector<Tensor> inputs{dy(), x()};
    if (sum != nullptr) {
      attributes.set(kAccumulate, std::int64_t{1});
      inputs.push_back(opaque(*sum));
    }
    return run(kernel, ops::conv2d_grad_weight, std::move(inputs), weight_, attributes);
  }

  std::vector<double> expected_forward() const {
    return backends::run(ops::conv2d, {in_double(x()), in_double(weights())}, attributes_)[0].logical();
  }
  std::vector<double> expected_grad_input() const {
    return backends::run(ops::conv2d_grad_input, {in_double(dy()), in_double(weights())}, for_input())[0].logical();
  }
  std::vector<double> expected_grad_weight() const {
    return backends::run(ops::conv2d_grad_weight, {in_double(dy()), in_double(x())}, for_weight())[0].logical();
  }
  Tensor sum() const { return Tensor::random(plain_weight_, 9); }

 private:
  Tensor x() const { return Tensor::random(x_, 1); }
  Tensor dy() const { return Tensor::random(dy_, 2); }
  Tensor weights() const { return Tensor::random(plain_weight_, 3); }

  static Tensor in_double(const Tensor& tensor) {
    Type type = tensor.type();
    type.dtype = DType::f64;
    return tensor.as(type);
  }

  Tensor opaque(const Tensor& plain) const {
    Tensor result(weight_);
    std::memset(result.data(), 0, result.size());
    backend_.write_opaque(weight_, result.data(), 0, {plain.data(), plain.size()});
    return result;
  }

  std::optional<Outcome> run(const KernelDef& kernel, const OpDef& op, std::vector<Tensor> inputs, const Type& output,
                             const Attributes& attributes) {
    std::vector<Type> input_types;
    std::vector<Operand> operands;
    for (Tensor& input : inputs) {
      input_types.push_back(input.type());
      operands.push_back(input.operand());
    }
    const std::vector<Type> output_types{output};
    const KernelMatch match =
        kernel.match({.op = op, .attributes = attributes, .inputs = input_types, .outputs = output_types, .threads = threads_});
    const auto* accept = std::get_if<Accept>(&match);
    if (accept == nullptr) return std::nullopt;
    Tensor result(output);
    Tensor workspace({.dtype = DType::u8, .shape = {std::max<std::int64_t>(accept->workspace.count(), 1)}});
    const std::vector<Tensor> before = inputs;
    std::vector<Operand> outputs{result.operand()};
    kernel
        .bind({.attributes = attributes,
               .inputs = operands,
               .outputs = outputs,
               .workspace = {workspace.data(), static_cast<std::size_t>(accept->workspace.count())},
               .threads = threads_})
        ->run();
    EXPECT_TRUE(result.guards_intact() && workspace.guards_intact()) << kernel.name;
    for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(inputs[i].same_bytes(before[i])) << kernel.name << " input " << i;
    if (output.layout.kind != Layout::Kind::opaque) return Outcome{accept->workspace, accept->numerics, result.logical()};
    Tensor plain(plain_weight_);
    backend_.read_opaque(output, result.data(), 0, {plain.data(), plain.size()});
    return Outcome{accept->workspace, accept->numerics, plain.logical()};
  }

  int threads_;
  Backend backend_;
  Attributes attributes_;
  Type x_, dy_, plain_weight_, weight_;
};

std::vector<const KernelDef*> kernels_for(std::string_view op) {
  std::vector<const KernelDef*> kernels;
  for (const KernelDef* kernel : cpu_backend(1).kernels) {
    if (kernel->op == op) kernels.push_back(kernel);
  }
  return kernels;
}

// Where products are made; f32 and what is stored with 16 bits.
constexpr DType kStored[] = {DType::f32, DType::bf16, DType::f16};

double half_step(DType dtype) { return dtype == DType::bf16 ? 0x1p-9 : dtype == DType::f16 ? 0x1p-12 : 0; }

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, DType dtype, std::string_view kernel) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2e-6 * largest + 2 * half_step(dtype) * std::abs(expected[i]))
        << kernel << ", element " << i;
}

bool has_pairs() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

class CpuConvolutionVariants : public testing::TestWithParam<DType> {};

TEST_P(CpuConvolutionVariants, AllGiveTheConvolution) {
  std::set<std::string_view> ran;
  for (const Shapes& shapes : all_shapes()) {
    for (const int threads : {1, 2}) {
      Products products(shapes, threads, GetParam());
      if (!products.has_own_layout()) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
      const std::vector<double> expected = products.expected_forward();
      for (const KernelDef* kernel : kernels_for("conv2d")) {
        if (kernel->name.starts_with("promoted")) continue;
        const auto outcome = products.forward(*kernel);
        if (!outcome) continue;
        ran.insert(kernel->name);
        expect_near(outcome->values, expected, GetParam(), kernel->name);
      }
    }
  }
  const std::vector<const char*> native{"onednn_conv2d"};
  const std::vector<const char*> halves{"half_conv2d", "half_conv2d_small", "half_conv2d_least"};
  for (const char* kernel : GetParam() == DType::f16 ? halves : native)
    EXPECT_TRUE(ran.contains(kernel)) << kernel << " never ran";
}

TEST_P(CpuConvolutionVariants, AllGiveTheGradients) {
  std::set<std::string_view> ran;
  for (const Shapes& shapes : all_shapes()) {
    for (const int threads : {1, 2}) {
      Products products(shapes, threads, GetParam());
      if (!products.has_own_layout()) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
      const std::vector<double> of_input = products.expected_grad_input(), of_weight = products.expected_grad_weight();
      for (const KernelDef* kernel : kernels_for("conv2d_grad_input")) {
        if (kernel->name.starts_with("promoted")) continue;  // slow, and the conformance tests have it
        const auto outcome = products.grad_input(*kernel);
        if (!outcome) continue;
        ran.insert(kernel->name);
        expect_near(outcome->values, of_input, GetParam(), kernel->name);
      }
      for (const KernelDef* kernel : kernels_for("conv2d_grad_weight")) {
        if (kernel->name.starts_with("promoted")) continue;
        const auto outcome = products.grad_weight(*kernel);
        if (!outcome) continue;
        ran.insert(kernel->name);
        expect_near(outcome->values, of_weight, GetParam(), kernel->name);
      }
    }
  }
  const std::vector<const char*> native{"onednn_conv2d_grad_input",           "onednn_conv2d_grad_input_quarters",
                                        "onednn_conv2d_grad_input_blocks",    "onednn_conv2d_grad_weight",
                                        "onednn_conv2d_grad_weight_quarters", "onednn_conv2d_grad_weight_blocks"};
  const std::vector<const char*> halves{"half_conv2d_grad_input",       "half_conv2d_grad_weight",
                                        "half_conv2d_grad_input_small", "half_conv2d_grad_weight_small",
                                        "half_conv2d_grad_input_least", "half_conv2d_grad_weight_least"};
  for (const char* kernel : GetParam() == DType::f16 ? halves : native)
    EXPECT_TRUE(ran.contains(kernel)) << kernel << " never ran";
  EXPECT_EQ(ran.contains("pairs_conv2d_grad_weight"), GetParam() == DType::bf16 && has_pairs());
}

TEST_P(CpuConvolutionVariants, ASumIsAddedToAfterRounding) {
  for (const Shapes& shapes : all_shapes()) {
    Products products(shapes, 2, GetParam());
    if (!products.has_own_layout()) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
    const Tensor sum = products.sum();
    for (const KernelDef* kernel : kernels_for("conv2d_grad_weight")) {
      const auto alone = products.grad_weight(*kernel);
      const auto added = products.grad_weight(*kernel, &sum);
      if (kernel->name.starts_with("promoted")) continue;  // does not add
      ASSERT_EQ(alone.has_value(), added.has_value()) << kernel->name;
      if (!alone) continue;
      Tensor expected(sum.type(), std::vector<double>(alone->values.size(), 0));
      for (std::int64_t i = 0; i < sum.elements(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        expected.set(i, static_cast<float>(sum[i]) + static_cast<float>(alone->values[at]));
        ASSERT_EQ(added->values[at], expected[i]) << kernel->name;
      }
    }
  }
}

TEST_P(CpuConvolutionVariants, ClassesOfNumericsDoNotPromiseTooMuch) {
  for (const Shapes& shapes : all_shapes()) {
    for (const std::string_view op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
      Products products(shapes, 2, GetParam());
      if (!products.has_own_layout()) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
      std::map<std::string_view, std::vector<double>> by_class;
      for (const KernelDef* kernel : kernels_for(op)) {
        const auto outcome = op == "conv2d"              ? products.forward(*kernel)
                             : op == "conv2d_grad_input" ? products.grad_input(*kernel)
                                                         : products.grad_weight(*kernel);
        if (!outcome) continue;
        const auto [entry, is_new] = by_class.try_emplace(outcome->numerics, outcome->values);
        if (!is_new) {
          EXPECT_EQ(entry->second, outcome->values) << kernel->name;
        }
      }
    }
  }
}

const KernelDef& paired_gradient() { return *cpu_backend(1).find("pairs_conv2d_grad_weight"); }

TEST(CpuPairedWeightGradient, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (!has_pairs()) GTEST_SKIP() << "the processor has no AVX512_BF16";
  for (const Shapes& shapes : all_shapes()) {
    const Tensor sum = Products(shapes, 1, DType::bf16).sum();
    const auto alone = Products(shapes, 1, DType::bf16).grad_weight(paired_gradient(), &sum);
    ASSERT_TRUE(alone);
    int others = 0;
    for (const int threads : {2, 3, 5, 8, 12}) {
      const auto outcome = Products(shapes, threads, DType::bf16).grad_weight(paired_gradient(), &sum);
      if (!outcome) continue;  // too little work for so many
      ++others;
      EXPECT_EQ(outcome->values, alone->values) << threads << " threads";
    }
    EXPECT_GE(others, 2);
  }
}

// A thread pairs a few rows of a large image at a time, and its workspace is that of its rows of the gradient, whatever the
// images.
TEST(CpuPairedWeightGradient, WorkspaceDoesNotGrowWithTheImages) {
  if (!has_pairs()) GTEST_SKIP() << "the processor has no AVX512_BF16";
  Products small({.input = {2, 16, 32, 32}, .weight = {16, 16, 3, 3}}, 2, DType::bf16);
  Products large({.input = {2, 16, 75, 64}, .weight = {16, 16, 3, 3}}, 2, DType::bf16);
  const auto outcome = large.grad_weight(paired_gradient());
  ASSERT_TRUE(outcome);
  expect_near(outcome->values, large.expected_grad_weight(), DType::bf16, "stripes of 8 rows, the last of 3");
  EXPECT_EQ(outcome->workspace, small.grad_weight(paired_gradient())->workspace);
}

TEST(CpuPairedWeightGradient, LeavesWhatWouldNotKeepThreadsBusyToOneDnn) {
  if (!has_pairs()) GTEST_SKIP() << "the processor has no AVX512_BF16";
  const Shapes shapes{.input = {2, 16, 8, 8}, .weight = {16, 16, 3, 3}};  // two tiles of rows, 18 items at most
  EXPECT_TRUE(Products(shapes, 18, DType::bf16).grad_weight(paired_gradient()));
  EXPECT_FALSE(Products(shapes, 32, DType::bf16).grad_weight(paired_gradient()));
}

// 128 x 128 weights are the largest of WRN-28-2, and with them its workspace.
TEST_P(CpuConvolutionVariants, SlicesNeedAFractionOfTheWorkspace) {
  const std::string_view family = GetParam() == DType::f16 ? "half" : "onednn";
  Products products({.input = {10, 128, 8, 8}, .weight = {128, 128, 3, 3}}, 2, GetParam());
  if (!products.has_own_layout()) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
  const Tensor sum = products.sum();
  std::vector<std::int64_t> for_input, for_weight;
  for (const KernelDef* kernel : kernels_for("conv2d_grad_input")) {
    if (!kernel->name.starts_with(family) || kernel->name.ends_with("one_thread")) continue;
    if (const auto outcome = products.grad_input(*kernel)) for_input.push_back(outcome->workspace.count());
  }
  for (const KernelDef* kernel : kernels_for("conv2d_grad_weight")) {
    if (!kernel->name.starts_with(family) || kernel->name.ends_with("one_thread")) continue;
    if (const auto outcome = products.grad_weight(*kernel, &sum)) for_weight.push_back(outcome->workspace.count());
  }
  ASSERT_EQ(for_input.size(), 3U);
  ASSERT_EQ(for_weight.size(), 3U);
  for (const auto& workspaces : {for_input, for_weight}) {
    EXPECT_LT(workspaces[1], workspaces[0]) << "quarters against the whole";
    EXPECT_LT(2 * workspaces[2], workspaces[0]) << "the least against the whole";
    EXPECT_LT(workspaces[2], workspaces[1]) << "the least against quarters";
  }
}

INSTANTIATE_TEST_SUITE_P(Stored, CpuConvolutionVariants, testing::ValuesIn(kStored),
                         [](const auto& stored) { return std::string(name_of(stored.param)); });

}  // namespace
}  // namespace snug::backends
