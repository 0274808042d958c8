// Kernels that promise the reference's own bits, not merely close numbers: what is drawn or looked up must not depend on who does
// it, nor on how many threads share the work.
#include <gtest/gtest.h>

#include "backends/cpu/run_on_cpu.h"
#include "backends/reference/support.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

Tensor run_on_cpu(std::string_view kernel_name, const OpDef& op, std::vector<Tensor> inputs, const Attributes& attributes,
                  int threads) {
  return run_all_on_cpu(kernel_name, op, std::move(inputs), attributes, threads).front();
}

Tensor images(Shape shape, std::uint64_t seed) {
  Tensor bytes = Tensor::random({.dtype = DType::u8, .shape = shape, .layout = Layout::channels_last()}, seed, 0, 256);
  return bytes;
}

TEST(CpuImageInput, GivesTheReferencesPixelsToTheBit) {
  for (const Shape& shape : {Shape{7, 3, 32, 32}, Shape{3, 1, 5, 9}, Shape{2, 3, 17, 16}}) {
    for (const std::int64_t augment : {0, 1}) {
      for (const std::uint64_t step : {0U, 7U}) {
        const auto channels = static_cast<std::size_t>(shape[1]);
        const Attributes attributes{{"mean", std::vector<double>(channels, 125.31)},
                                    {"std", std::vector<double>(channels, 62.99)},
                                    {"augment", augment},
                                    {"padding", std::int64_t{4}},
                                    {"bits", std::int64_t{32}}};
        const std::vector<Tensor> inputs{images(shape, step), Tensor::scalars({.seed = 3, .step = step, .first_example = 90})};
        const Tensor expected = run(ops::image_input, inputs, attributes)[0];
        for (const int threads : {1, 2, 5})
          EXPECT_TRUE(run_on_cpu("table_image_input", ops::image_input, inputs, attributes, threads).same_bytes(expected));
      }
    }
  }
}

TEST(CpuDropout, DropsAndScalesWhatTheReferenceDoesToTheBit) {
  for (const Shape& shape : {Shape{3, 4096}, Shape{7, 13}, Shape{1, 1}, Shape{5, 777}}) {
    for (const double probability : {0.0, 0.1, 0.5, 1.0 - 0x1p-40}) {
      // The last counts its blocks across a carry from the lower to the upper word of their number.
      for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3}, (std::uint64_t{1} << 34U) / 4096 - 1}) {
        const Attributes attributes{{"probability", probability}, {"key", std::int64_t{5}}};
        const std::vector<Tensor> inputs{Tensor::random({.dtype = DType::f32, .shape = shape}, 1),
                                         Tensor::scalars({.seed = 0x123456789ABCDEF, .step = 4, .first_example = first})};
        const Tensor expected = run(ops::dropout, inputs, attributes)[0];
        for (const int threads : {1, 2, 3})
          EXPECT_TRUE(run_on_cpu("simd_dropout", ops::dropout, inputs, attributes, threads).same_bytes(expected))
              << to_string(shape) << " " << probability << " " << first;
      }
    }
  }
}

// A gradient that was never added to anything may be -0; a sum that began at zero never is. An update must not tell them apart.
TEST(CpuSgd, ANegativeZeroIsTheZeroThatASumWouldBe) {
  const Type type{.dtype = DType::f32, .shape = {21}};
  const auto all = [&](double value) { return Tensor(type, std::vector<double>(21, value)); };
  const Tensor rate = Tensor::scalars({.learning_rate = 0.1});
  const Tensor norm({.dtype = DType::f64, .shape = {2}}, {0, 1});
  const Attributes rule{{"momentum", 0.0}, {"weight_decay", 0.0}, {"nesterov", std::int64_t{0}}};
  for (const double weight : {0.0, -0.0, 0.5}) {
    const Tensor expected = run(ops::sgd, {all(weight), all(0.0), rate}, rule)[0];
    EXPECT_TRUE(run(ops::sgd, {all(weight), all(-0.0), rate}, rule)[0].same_bytes(expected)) << weight;
    for (const double gradient : {0.0, -0.0}) {
      const std::vector<Tensor> inputs{all(weight), all(gradient), rate};
      EXPECT_TRUE(run_on_cpu("simd_sgd", ops::sgd, inputs, rule, 1).same_bytes(expected)) << weight;
      EXPECT_TRUE(run_on_cpu("simd_clipped_sgd", ops::sgd, {inputs[0], inputs[1], rate, norm}, rule, 1).same_bytes(expected));
    }
  }
}

// An update, which moves its first input.
void expect_same_bits_by_any_threads(std::string_view kernel, const OpDef& op, const std::vector<Tensor>& inputs,
                                     const Attributes& attributes) {
  const std::vector<Tensor> by_one = run_all_on_cpu(kernel, op, inputs, attributes, 1);
  EXPECT_FALSE(by_one[0].same_bytes(inputs[0]));
  for (const int threads : {2, 3}) {
    const std::vector<Tensor> by_more = run_all_on_cpu(kernel, op, inputs, attributes, threads);
    for (std::size_t i = 0; i < by_one.size(); ++i) {
      EXPECT_TRUE(by_more[i].same_bytes(by_one[i]))
          << name_of(inputs[0].type().dtype) << ", output " << i << ", " << threads << " threads";
    }
  }
}

// Several blocks, the last one incomplete, shared by threads in whichever way.
TEST(CpuQuantizedSgd, AnyNumberOfThreadsGivesTheSameBits) {
  constexpr std::int64_t kElements = 256 * 21 + 77;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Type type{.dtype = dtype, .shape = {kElements}};
    Attributes rule{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", std::int64_t{1}}};
    if (dtype != DType::f32) {
      rule.set("stochastic", std::int64_t{1});
      rule.set("key", std::int64_t{3});
    }
    const std::vector<Tensor> inputs{Tensor::random(type, 1), Tensor::random(type, 2),
                                     Tensor::scalars({.seed = 5, .step = 2, .learning_rate = 0.1}),
                                     Tensor::random({.dtype = DType::u8, .shape = {kElements}}, 3, 0, 256),
                                     Tensor::random({.dtype = DType::f32, .shape = {22}}, 4, 0.01, 2)};
    expect_same_bits_by_any_threads("simd_sgd_quantised", ops::sgd_quantized, inputs, rule);
  }
}

TEST(CpuQuantizedAdamw, AnyNumberOfThreadsGivesTheSameBits) {
  constexpr std::int64_t kElements = 256 * 21 + 77;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Type type{.dtype = dtype, .shape = {kElements}};
    Attributes rule{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.1}};
    if (dtype != DType::f32) {
      rule.set("stochastic", std::int64_t{1});
      rule.set("key", std::int64_t{3});
    }
    const std::vector<Tensor> inputs{Tensor::random(type, 1),
                                     Tensor::random(type, 2),
                                     Tensor::scalars({.seed = 5, .step = 2, .learning_rate = 0.1}),
                                     Tensor::random({.dtype = DType::u8, .shape = {kElements}}, 3, 0, 256),
                                     Tensor::random({.dtype = DType::u8, .shape = {kElements}}, 4, 0, 256),
                                     Tensor::random({.dtype = DType::f32, .shape = {22, 2}}, 5, 0.01, 2),
                                     Tensor({.dtype = DType::f64, .shape = {1}}, {3})};
    expect_same_bits_by_any_threads("simd_adamw_quantized", ops::adamw_quantized, inputs, rule);
  }
}

TEST(CpuBits, AreTheReferencesToTheBit) {
  for (const Shape& shape : {Shape{3, 5, 7, 9}, Shape{2, 32, 16, 16}, Shape{1, 1, 1, 1}, Shape{1, 9, 1, 1}}) {
    const Type type{.dtype = DType::f32, .shape = shape, .layout = Layout::channels_last()};
    const Tensor y = Tensor::random(type, 5);
    const Tensor bits = run(ops::sign_bits, {y})[0];
    const Tensor dx = run(ops::relu_grad_bits, {y, bits})[0];
    for (const int threads : {1, 2, 3}) {
      EXPECT_TRUE(run_on_cpu("simd_sign_bits", ops::sign_bits, {y}, {}, threads).same_bytes(bits));
      EXPECT_TRUE(run_on_cpu("simd_relu_grad_bits", ops::relu_grad_bits, {y, bits}, {}, threads).same_bytes(dx));
    }
  }
}

TEST(CpuRelayout, MovesEveryElementToItsPlace) {
  for (const Shape& shape : {Shape{3, 5, 7, 9}, Shape{4, 512, 7, 7}, Shape{1, 3, 1, 1}}) {
    for (const bool to_channels_last : {false, true}) {
      const Tensor x = Tensor::random({.dtype = DType::f32, .shape = shape, .layout = plain_layout(!to_channels_last)}, 2);
      const Attributes attributes{{"channels_last", std::int64_t{to_channels_last ? 1 : 0}}};
      const Tensor y = run_on_cpu("onednn_relayout", ops::relayout, {x}, attributes, 2);
      EXPECT_TRUE(y.same_bytes(x.with_layout(to_channels_last))) << to_string(shape);
    }
  }
}

}  // namespace
}  // namespace snug::backends
