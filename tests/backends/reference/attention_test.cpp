#include <cmath>
#include <cstring>

#include "support.h"
#include "support/plain_attention.h"

namespace snug::backends {
namespace {

using support::AttentionSettings;

// Four query heads share two of keys and values.
AttentionSettings grouped() { return {.examples = 3, .length = 5, .heads = 4, .kv_heads = 2, .head_size = 3, .scale = 0.8}; }

std::vector<AttentionSettings> all_settings() {
  std::vector<AttentionSettings> all{grouped(), grouped(), grouped(), grouped(), grouped()};
  all[1].causal = false;
  all[2].lengths = {5, 2, 1};
  all[3].dropout = 0.4;
  all[3].scalars = {.seed = 3, .step = 5, .first_example = 7};
  all[4] = {.examples = 2, .length = 1, .heads = 1, .kv_heads = 1, .head_size = 1, .lengths = {1, 0}};
  return all;
}

struct Attention {
  AttentionSettings settings;
  Tensor qkv;

  Attention(const AttentionSettings& s, DType dtype)
      : settings(s), qkv(Tensor::random({.dtype = dtype, .shape = {s.rows(), s.columns()}}, 5, -2, 2)) {}

  std::vector<Tensor> run(const OpDef& op, std::vector<Tensor> inputs) const {
    inputs.push_back(Tensor::scalars(settings.scalars));
    if (!settings.lengths.empty()) inputs.push_back({{.dtype = DType::i32, .shape = {settings.examples}}, settings.lengths});
    return backends::run(op, inputs, settings.attributes());
  }
  std::vector<Tensor> forward() const { return run(ops::attention, {qkv}); }
  Tensor dy() const { return Tensor::random({.dtype = qkv.type().dtype, .shape = {settings.rows(), settings.width()}}, 6); }
  Tensor backward() const {
    const auto outputs = forward();
    return run(ops::attention_grad, {dy(), qkv, outputs[0], outputs[1]})[0];
  }
};

// An f32 probability is computed from scores in double, but a result is rounded once.
void expect_near(const Tensor& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.elements(), static_cast<std::int64_t>(expected.size())) << what;
  const double tolerance = got.type().dtype == DType::f32 ? 1e-7 : 1e-13;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double want = expected[static_cast<std::size_t>(i)];
    EXPECT_NEAR(got[i], want, tolerance * (1 + std::abs(want))) << what << " " << i;
  }
}

TEST(ReferenceAttention, AgreesWithTheMatrixOfScores) {
  for (const AttentionSettings& s : all_settings()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Attention attention(s, dtype);
      const support::PlainAttention plain = support::plain_attention(s, attention.qkv.logical(), attention.qkv.logical());
      const auto outputs = attention.forward();
      expect_near(outputs[0], plain.y, "y");
      expect_near(outputs[1], plain.log_sum_exp, "log_sum_exp");
      expect_near(attention.run(ops::attention_probabilities, {attention.qkv})[0], plain.probabilities, "probabilities");
    }
  }
}

TEST(ReferenceAttention, BothBackwardOpsGiveTheSameGradient) {
  for (const AttentionSettings& s : all_settings()) {
    const Attention attention(s, DType::f64);
    const Tensor probabilities = attention.run(ops::attention_probabilities, {attention.qkv})[0];
    const Tensor gradient = attention.run(ops::attention_grad_probabilities, {attention.dy(), attention.qkv, probabilities})[0];
    expect_near(gradient, attention.backward().logical(), "dqkv");
  }
}

TEST(ReferenceAttention, AFutureTokenChangesNothing) {
  Attention attention(grouped(), DType::f64);
  const Tensor before = attention.forward()[0];
  for (std::int64_t c = 0; c < attention.settings.columns(); ++c) attention.qkv.set(attention.qkv.number_of({3, c}), 100.0);
  const Tensor after = attention.forward()[0];
  for (std::int64_t r = 0; r < before.type().shape[0]; ++r) {
    bool same = true;
    for (std::int64_t c = 0; c < attention.settings.width(); ++c) same = same && before.at(r, c) == after.at(r, c);
    EXPECT_EQ(same, r != 3 && r != 4) << r;  // of the first example, from position 3 on
  }
}

TEST(ReferenceAttention, AQueryThatSeesNothingGivesZerosAndHasNoGradient) {
  for (const double length : {0.0, -7.0}) {
    AttentionSettings s = grouped();
    s.lengths = {5, length, 2147483647};
    const Attention attention(s, DType::f64);
    const auto outputs = attention.forward();
    const Tensor gradient = attention.backward();
    for (std::int64_t r = 5; r < 10; ++r) {
      for (std::int64_t c = 0; c < s.width(); ++c) EXPECT_EQ(outputs[0].at(r, c), 0.0);
      for (std::int64_t h = 0; h < s.heads; ++h) EXPECT_EQ(outputs[1].at(r, h), double{std::numeric_limits<float>::lowest()});
      for (std::int64_t c = 0; c < s.columns(); ++c) EXPECT_EQ(gradient.at(r, c), 0.0);
    }
    // A length beyond the example is its whole length, so the others are as they are without lengths.
    const auto plain = Attention(grouped(), DType::f64).forward();
    for (const std::int64_t r : {0, 4, 10, 14}) EXPECT_EQ(outputs[0].at(r, 0), plain[0].at(r, 0)) << r;
  }
}

TEST(ReferenceAttention, DropoutDependsOnTheExampleAndNotOnTheMicrobatch) {
  AttentionSettings s = grouped();
  s.dropout = 0.5;
  s.scalars = {.seed = 3, .step = 5, .first_example = 0};
  const Attention whole(s, DType::f32);
  Attention last = whole;
  last.settings.examples = 1;
  last.settings.scalars.first_example = 2;
  const std::int64_t rows = s.length;
  Tensor of_last({.dtype = DType::f32, .shape = {rows, s.columns()}});
  std::memcpy(of_last.data(), whole.qkv.data() + 2 * of_last.size(), of_last.size());
  last.qkv = of_last;
  const Tensor together = whole.forward()[0], alone = last.forward()[0];
  EXPECT_EQ(std::memcmp(together.data() + 2 * alone.size(), alone.data(), alone.size()), 0);
  last.settings.scalars.step = 6;
  EXPECT_FALSE(last.forward()[0].same_bytes(alone));
}

TEST(ReferenceAttention, DropoutKeepsAsManyAsItShouldAndScalesThem) {
  AttentionSettings s{.examples = 4, .length = 32, .heads = 2, .kv_heads = 2, .head_size = 1, .causal = false, .dropout = 0.25};
  Attention attention(s, DType::f64);
  // All scores are 0 and all values 1: y is the share that was kept, times 1 / (1 - dropout).
  for (std::int64_t i = 0; i < attention.qkv.elements(); ++i) attention.qkv.set(i, i % 6 < 4 ? 0.0 : 1.0);
  double sum = 0;
  const Tensor y = attention.forward()[0];
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const double kept = y[i] * 0.75 * 32;
    EXPECT_NEAR(kept, std::round(kept), 1e-9);
    sum += kept;
  }
  EXPECT_NEAR(sum / (4 * 2 * 32 * 32), 0.75, 0.02);
}

}  // namespace
}  // namespace snug::backends
