// The gradients of attention in tiles, run on the host by an emulated block of a GPU's threads.
#include "backends/cuda/sequence/attention_grad_tiles.cuh"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cuda/attention_problem.h"

namespace snug::backends::cuda {

namespace {

// What backward reads, as forward would have stored it, and dqkv in double.
template <typename T>
struct Backward {
  const Problem<T>& problem;
  std::vector<T> y, dy;
  std::vector<float> log_sum_exp;
  std::vector<double> expected_queries, expected_keys;  // where these are not apart, the sum of both is expected

  explicit Backward(const Problem<T>& of)
      : problem(of),
        y(stored<T>(of.plain.y)),
        dy(stored<T>(waves(of.settings.rows() * of.settings.width(), 0.53))),
        log_sum_exp(of.plain.log_sum_exp.begin(), of.plain.log_sum_exp.end()),
        expected_queries(of.queries.size()),
        expected_keys(of.keys.size()) {
    const AttentionSettings& s = problem.settings;
    for (std::int64_t i = 0; i < s.rows() * s.heads; ++i)
      add_query({.n = i / s.heads / s.length, .h = i % s.heads, .t = i / s.heads % s.length});
    if (s.apart()) return;
    for (std::size_t i = 0; i < expected_keys.size(); ++i) expected_queries[i] += expected_keys[i];
    expected_keys = expected_queries;
  }

  struct Gradients {
    std::vector<T> queries, keys;
  };

  Gradients run(Order order) const {
    Gradients result{.queries = std::vector<T>(expected_queries.size(), T{0xFFFF}),
                     .keys = std::vector<T>(expected_keys.size(), T{0xFFFF})};
    std::vector<float> dy_times_y(log_sum_exp.size(), std::numeric_limits<float>::quiet_NaN());
    const launch::AttentionGradOperands<T> operands{.dy = dy.data(),
                                                    .queries = problem.queries.data(),
                                                    .keys = problem.keys.data(),
                                                    .y = y.data(),
                                                    .log_sum_exp = log_sum_exp.data(),
                                                    .probabilities = nullptr,
                                                    .dy_times_y = dy_times_y.data(),
                                                    .dqueries = (problem.settings.apart() ? result.queries : result.keys).data(),
                                                    .dkeys = result.keys.data()};
    problem.with_columns([&]<int D, bool Drops>() {
      using Queries = QueryGradTiles<EmulatedCore, T, D, Drops>;
      using Keys = KeyGradTiles<EmulatedCore, T, D, Drops>;
      run_blocks<Queries>(problem.query_blocks(kOwnRows<D>), order, [&] { Queries::run(operands, problem.shape, problem.rule); });
      run_blocks<Keys>(problem.key_blocks(kOwnRows<D>), order, [&] { Keys::run(operands, problem.shape, problem.rule); });
    });
    if (!problem.settings.apart()) result.queries = result.keys;
    return result;
  }

 private:
  void add_query(support::detail::Query q) {
    const AttentionSettings& s = problem.settings;
    const std::int64_t kv_head = q.h / (s.heads / s.kv_heads), row = q.n * s.length + q.t;
    const std::size_t query = s.query_at(q.n, q.t, q.h), result = count(row * s.width() + q.h * s.head_size);
    const auto size = count(s.head_size);
    const auto dot_dy = [&](const auto& of) {
      double sum = 0;
      for (std::size_t c = 0; c < size; ++c) sum += double{dy[result + c].widened()} * of(c);
      return sum;
    };
    const double dy_times_y = dot_dy([&](std::size_t c) { return double{y[result + c].widened()}; });
    for (std::int64_t j = 0; j < s.keys(); ++j) {
      const double probability = problem.plain.probabilities[count((row * s.heads + q.h) * s.keys() + j)];
      if (probability == 0) continue;
      const std::size_t key = s.key_at(q.n, j, kv_head), value = s.value_at(q.n, j, kv_head);
      const double kept = support::detail::is_kept(s, q, j) ? 1 / (1 - s.dropout) : 0;
      const double of_probability = kept * dot_dy([&](std::size_t c) { return problem.wide_keys[value + c]; });
      const double of_score = s.scale * probability * (of_probability - dy_times_y);
      for (std::size_t c = 0; c < size; ++c) {
        expected_queries[query + c] += of_score * problem.wide_keys[key + c];
        expected_keys[key + c] += of_score * problem.wide_queries[query + c];
        expected_keys[value + c] += kept * probability * double{dy[result + c].widened()};
      }
    }
  }
};

template <typename T>
void expect_backward(const AttentionSettings& settings) {
  const Problem<T> problem(settings);
  const Backward<T> backward(problem);
  const double sharing = static_cast<double>(settings.heads) / static_cast<double>(settings.kv_heads);
  // Probabilities and the gradients of scores are rounded before the products in which they are factors.
  const double rounded = 4 * sharing / (1 - settings.dropout) * std::max(1.0, settings.scale);
  const auto gradients = backward.run(Order::ascending);
  expect_near(widened(gradients.queries), backward.expected_queries, 2 * kUnit<T>, kUnit<T> * rounded, "of queries");
  expect_near(widened(gradients.keys), backward.expected_keys, 2 * kUnit<T>, kUnit<T> * rounded, "of keys and values");
}

class AttentionGradOfShape : public testing::TestWithParam<NamedCase> {};

TEST_P(AttentionGradOfShape, IsWhatPlainAttentionGives) {
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal ? "causal" : "full");
    AttentionSettings settings = GetParam().settings;
    settings.causal = causal;
    expect_backward<Half>(settings);
    if (causal) expect_backward<Bfloat>(settings);
  }
}

class CrossAttentionGradOfShape : public testing::TestWithParam<NamedCase> {};

TEST_P(CrossAttentionGradOfShape, IsWhatPlainAttentionGives) {
  expect_backward<Half>(GetParam().settings);
  expect_backward<Bfloat>(GetParam().settings);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossAttentionGradOfShape, testing::ValuesIn(cross_attention_shapes()),
                         [](const auto& instance) { return std::string(instance.param.name); });
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGradOfShape, testing::ValuesIn(attention_shapes()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(AttentionGradTiles, ThreadsWaitForWhatOthersWrite) {
  const Problem<Half> problem({.examples = 1, .length = 200, .heads = 2, .kv_heads = 1, .head_size = 64});
  const Backward<Half> backward(problem);
  EXPECT_TRUE(same_bits(backward.run(Order::ascending).keys, backward.run(Order::descending).keys));
}

}  // namespace

}  // namespace snug::backends::cuda
