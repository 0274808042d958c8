// The kernels of sequence values: any number of threads gives the same bits.
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "backends/cpu/run_on_cpu.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

struct Call {
  std::string_view kernel;
  const OpDef& op;
  std::vector<Tensor> inputs;
  Attributes attributes = {};
};

void expect_same_bits_on_any_threads(const Call& call) {
  const std::vector<Tensor> by_one = run_all_on_cpu(call.kernel, call.op, call.inputs, call.attributes, 1);
  for (const int threads : {2, 3, 7}) {
    const std::vector<Tensor> by_more = run_all_on_cpu(call.kernel, call.op, call.inputs, call.attributes, threads);
    for (std::size_t i = 0; i < by_one.size(); ++i) {
      EXPECT_TRUE(by_more[i].same_bytes(by_one[i]))
          << call.kernel << " of " << to_string(call.inputs[0].type()) << ", output " << i << ", " << threads << " threads";
    }
  }
}

class CpuSequence : public testing::TestWithParam<DType> {
 protected:
  // Of the type under test, and of statistics.
  static Tensor real(Shape shape, std::uint64_t seed) { return Tensor::random({.dtype = GetParam(), .shape = shape}, seed); }
  static Tensor single(Shape shape, std::uint64_t seed, double low = -1) {
    return Tensor::random({.dtype = DType::f32, .shape = shape}, seed, low);
  }
  static Tensor indices(std::int64_t rows, std::int64_t low, std::int64_t high) {
    return Tensor::random({.dtype = DType::i32, .shape = {rows}}, 9, static_cast<double>(low), static_cast<double>(high));
  }
};

TEST_P(CpuSequence, NormsOfRows) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{300, 384}, {131, 37}, {5, 1000}}) {
    const Tensor x = real({rows, columns}, 1), dy = real({rows, columns}, 2);
    const Tensor weight = single({columns}, 3), bias = single({columns}, 4);
    const Tensor mean = single({rows}, 5), inverse = single({rows}, 6, 0.5);
    const Attributes epsilon{{"epsilon", 1e-5}};
    expect_same_bits_on_any_threads({"simd_layer_norm", ops::layer_norm, {x, weight, bias}, epsilon});
    expect_same_bits_on_any_threads({"simd_layer_norm_grad_input", ops::layer_norm_grad_input, {dy, x, weight, mean, inverse}});
    expect_same_bits_on_any_threads({"simd_layer_norm_grad_parameters", ops::layer_norm_grad_parameters, {dy, x, mean, inverse}});
    expect_same_bits_on_any_threads({"simd_rms_norm", ops::rms_norm, {x, weight}, epsilon});
    expect_same_bits_on_any_threads({"simd_rms_norm_grad_input", ops::rms_norm_grad_input, {dy, x, weight, inverse}});
    expect_same_bits_on_any_threads({"simd_rms_norm_grad_weight", ops::rms_norm_grad_weight, {dy, x, inverse}});
  }
}

// Vectors and what is left of a part are computed alike: where threads divide the elements must not show.
TEST_P(CpuSequence, Activations) {
  const Tensor x = real({41, 254}, 1), dy = real({41, 254}, 2), gated = real({41, 508}, 3);
  for (const std::int64_t tanh : {0, 1}) {
    expect_same_bits_on_any_threads({"simd_gelu", ops::gelu, {x}, {{"tanh", tanh}}});
    expect_same_bits_on_any_threads({"simd_gelu_grad", ops::gelu_grad, {dy, x}, {{"tanh", tanh}}});
  }
  expect_same_bits_on_any_threads({"simd_silu", ops::silu, {x}});
  expect_same_bits_on_any_threads({"simd_silu_grad", ops::silu_grad, {dy, x}});
  for (const std::int64_t activation : {0, 1, 2}) {
    expect_same_bits_on_any_threads({"simd_gated_linear_unit", ops::gated_linear_unit, {gated}, {{"activation", activation}}});
    expect_same_bits_on_any_threads(
        {"simd_gated_linear_unit_grad", ops::gated_linear_unit_grad, {dy, gated}, {{"activation", activation}}});
  }
}

TEST_P(CpuSequence, TablesAndTheirGradients) {
  const Attributes positions{{"rows_per_example", std::int64_t{60}}, {"positions", std::int64_t{64}}};
  const Tensor x = real({300, 48}, 1), table = real({64, 48}, 2), some = indices(300, -3, 70);
  expect_same_bits_on_any_threads({"simd_embedding", ops::embedding, {some, table}});
  expect_same_bits_on_any_threads({"simd_embedding_grad", ops::embedding_grad, {some, x}, {{"rows", std::int64_t{64}}}});
  expect_same_bits_on_any_threads({"simd_add_positions", ops::add_positions, {x, table}, positions});
  expect_same_bits_on_any_threads({"simd_add_positions_grad", ops::add_positions_grad, {x}, positions});
  for (const std::int64_t inverse : {0, 1}) {
    const Attributes rotation{{"rows_per_example", std::int64_t{60}},
                              {"heads", std::int64_t{2}},
                              {"head_size", std::int64_t{20}},
                              {"base", 10000.0},
                              {"inverse", inverse}};
    expect_same_bits_on_any_threads({"simd_rotary", ops::rotary, {x}, rotation});
  }
}

TEST_P(CpuSequence, CrossAttentionAndItsGradients) {
  constexpr std::int64_t kExamples = 3, kHeads = 4, kKvHeads = 2, kSize = 24, kLength = 70;
  for (const std::int64_t key_length : {132, 65}) {
    const Attributes attributes{{"heads", kHeads},
                                {"kv_heads", kKvHeads},
                                {"scale", 0.2},
                                {"dropout", 0.1},
                                {"key", std::int64_t{3}},
                                {"rows_per_example", kLength},
                                {"key_rows_per_example", key_length}};
    const Tensor q = real({kExamples * kLength, kHeads * kSize}, 1), dy = real(q.type().shape, 2);
    const Tensor kv = real({kExamples * key_length, 2 * kKvHeads * kSize}, 3);
    const Tensor scalars = Tensor::scalars({.seed = 5, .step = 3, .first_example = 11, .valid_examples = 3});
    const Tensor lengths({.dtype = DType::i32, .shape = {kExamples}}, {static_cast<double>(key_length), 60, 0});
    expect_same_bits_on_any_threads({"simd_cross_attention", ops::cross_attention, {q, kv, scalars, lengths}, attributes});
    const std::vector<Tensor> y =
        run_all_on_cpu("simd_cross_attention", ops::cross_attention, {q, kv, scalars, lengths}, attributes, 1);
    const std::vector<Tensor> inputs{dy, q, kv, y[0], y[1], scalars, lengths};
    expect_same_bits_on_any_threads({"simd_cross_attention_grad", ops::cross_attention_grad, inputs, attributes});
    // With less workspace, for the same bits.
    const std::vector<Tensor> whole =
        run_all_on_cpu("simd_cross_attention_grad", ops::cross_attention_grad, inputs, attributes, 1);
    const std::vector<Tensor> blocks =
        run_all_on_cpu("simd_cross_attention_grad_blocks", ops::cross_attention_grad, inputs, attributes, 1, Bytes(140 << 10));
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(whole[i].same_bytes(blocks[i])) << i;
  }
}

// Heads narrower than a vector and with columns left over, and several chunks of rows.
TEST_P(CpuSequence, ConvolutionsAndTheirGradients) {
  constexpr std::int64_t kRows = 300, kLength = 60;
  for (const auto& [heads, size, kernel] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{16, 4, 7}, {3, 37, 31}, {2, 70, 3}}) {
    const Tensor x = real({kRows, heads * size}, 1), dy = real({kRows, heads * size}, 2);
    const Tensor shared = real({heads, kernel}, 3), of_rows = real({kRows, heads * kernel}, 4);
    for (const std::int64_t causal : {0, 1}) {
      const Attributes taps{{"heads", heads}, {"kernel", kernel}, {"causal", causal}, {"rows_per_example", kLength}};
      expect_same_bits_on_any_threads({"simd_lightweight_conv", ops::lightweight_conv, {x, shared}, taps});
      expect_same_bits_on_any_threads({"simd_lightweight_conv_grad_input", ops::lightweight_conv_grad_input, {dy, shared}, taps});
      expect_same_bits_on_any_threads({"simd_lightweight_conv_grad_weight", ops::lightweight_conv_grad_weight, {dy, x}, taps});
      expect_same_bits_on_any_threads({"simd_dynamic_conv", ops::dynamic_conv, {x, of_rows}, taps});
      expect_same_bits_on_any_threads({"simd_dynamic_conv_grad_input", ops::dynamic_conv_grad_input, {dy, of_rows}, taps});
      expect_same_bits_on_any_threads({"simd_dynamic_conv_grad_weight", ops::dynamic_conv_grad_weight, {dy, x}, taps});
    }
  }
}

// Two query heads to a head of keys, tiles that are not whole, and blocks of the generator that serve several keys or do not.
TEST_P(CpuSequence, AttentionAndItsGradients) {
  constexpr std::int64_t kExamples = 3, kHeads = 4, kKvHeads = 2, kSize = 24;
  for (const std::int64_t length : {132, 65}) {
    for (const std::int64_t causal : {0, 1}) {
      const std::int64_t rows = kExamples * length;
      const Attributes attributes{{"heads", kHeads}, {"kv_heads", kKvHeads},   {"causal", causal},          {"scale", 0.2},
                                  {"dropout", 0.1},  {"key", std::int64_t{3}}, {"rows_per_example", length}};
      const Tensor qkv = real({rows, (kHeads + 2 * kKvHeads) * kSize}, 1), dy = real({rows, kHeads * kSize}, 2);
      const Tensor scalars = Tensor::scalars({.seed = 5, .step = 3, .first_example = 11, .valid_examples = 3});
      const Tensor lengths({.dtype = DType::i32, .shape = {kExamples}}, {static_cast<double>(length), 70, 0});
      expect_same_bits_on_any_threads({"simd_attention", ops::attention, {qkv, scalars, lengths}, attributes});
      expect_same_bits_on_any_threads(
          {"simd_attention_probabilities", ops::attention_probabilities, {qkv, scalars, lengths}, attributes});

      const std::vector<Tensor> y = run_all_on_cpu("simd_attention", ops::attention, {qkv, scalars, lengths}, attributes, 1);
      const std::vector<Tensor> probabilities =
          run_all_on_cpu("simd_attention_probabilities", ops::attention_probabilities, {qkv, scalars, lengths}, attributes, 1);
      const std::vector<Tensor> from_sums{dy, qkv, y[0], y[1], scalars, lengths};
      const std::vector<Tensor> from_probabilities{dy, qkv, probabilities[0], scalars, lengths};
      expect_same_bits_on_any_threads({"simd_attention_grad", ops::attention_grad, from_sums, attributes});
      expect_same_bits_on_any_threads(
          {"simd_attention_grad_probabilities", ops::attention_grad_probabilities, from_probabilities, attributes});

      // With less workspace, for the same bits.
      const Bytes limit(140 << 10);
      const Tensor whole = run_all_on_cpu("simd_attention_grad", ops::attention_grad, from_sums, attributes, 1)[0];
      const Tensor whole_from_probabilities = run_all_on_cpu(
          "simd_attention_grad_probabilities", ops::attention_grad_probabilities, from_probabilities, attributes, 1)[0];
      for (const int threads : {1, 2}) {
        const Bytes limit_of_all(limit.count() * threads);
        EXPECT_TRUE(whole.same_bytes(
            run_all_on_cpu("simd_attention_grad_blocks", ops::attention_grad, from_sums, attributes, threads, limit_of_all)[0]));
        EXPECT_TRUE(whole_from_probabilities.same_bytes(run_all_on_cpu("simd_attention_grad_probabilities_blocks",
                                                                       ops::attention_grad_probabilities, from_probabilities,
                                                                       attributes, threads, limit_of_all)[0]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stored, CpuSequence, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

}  // namespace
}  // namespace snug::backends
