// The tiles of attention on tensor cores, run on the host by an emulated block of a GPU's threads.
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cuda/attention_problem.h"
#include "backends/cuda/sequence/attention_forward_tiles.cuh"

namespace snug::backends::cuda {

namespace {

template <typename T>
struct Forward {
  std::vector<T> y;
  std::vector<float> log_sum_exp;

  Forward(const Problem<T>& problem, Order order)
      : y(count(problem.settings.rows() * problem.settings.width()), T{0xFFFF}),
        log_sum_exp(count(problem.settings.rows() * problem.settings.heads), std::numeric_limits<float>::quiet_NaN()) {
    problem.with_columns([&]<int D, bool Drops>() {
      using Kernel = ForwardTiles<EmulatedCore, T, D, Drops>;
      const launch::AttentionOperands<T> operands{problem.queries.data(), problem.keys.data(), y.data(), log_sum_exp.data()};
      run_blocks<Kernel>(problem.query_blocks(kOwnRows<D>), order, [&] { Kernel::run(operands, problem.shape, problem.rule); });
    });
  }
};

template <typename T>
void expect_forward(const AttentionSettings& settings) {
  const Problem<T> problem(settings);
  const Forward<T> forward(problem, Order::ascending);
  const double dropped = 1 / (1 - settings.dropout);
  expect_near(widened(forward.y), problem.plain.y, 2 * kUnit<T>, kUnit<T> * dropped, "y");
  expect_near({forward.log_sum_exp.begin(), forward.log_sum_exp.end()}, problem.plain.log_sum_exp, 1e-5, 1e-5, "log_sum_exp");
}

class AttentionOfShape : public testing::TestWithParam<NamedCase> {};

TEST_P(AttentionOfShape, IsWhatPlainAttentionGives) {
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal ? "causal" : "full");
    AttentionSettings settings = GetParam().settings;
    settings.causal = causal;
    expect_forward<Half>(settings);
    if (causal) expect_forward<Bfloat>(settings);
  }
}

class CrossAttentionOfShape : public testing::TestWithParam<NamedCase> {};

TEST_P(CrossAttentionOfShape, IsWhatPlainAttentionGives) {
  expect_forward<Half>(GetParam().settings);
  expect_forward<Bfloat>(GetParam().settings);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossAttentionOfShape, testing::ValuesIn(cross_attention_shapes()),
                         [](const auto& instance) { return std::string(instance.param.name); });
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOfShape, testing::ValuesIn(attention_shapes()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(AttentionTiles, ThreadsWaitForWhatOthersWrite) {
  const Problem<Half> problem({.examples = 1, .length = 200, .heads = 1, .kv_heads = 1, .head_size = 64});
  const Forward<Half> ascending(problem, Order::ascending), descending(problem, Order::descending);
  EXPECT_TRUE(same_bits(ascending.y, descending.y));
  EXPECT_TRUE(same_bits(ascending.log_sum_exp, descending.log_sum_exp));
}

TEST(AttentionTiles, BlocksTakeEachTileOfEachHeadOnce) {
  for (const bool last_first : {false, true}) {
    std::vector<int> taken(30 * 5 * 3);
    for (std::uint32_t block = 0; block < taken.size(); ++block) {
      const TilePlace place(block, 30, 300, 5, 128, last_first);
      ASSERT_TRUE(place.example < 30 && place.head < 5 && place.tile >= 0 && place.tile < 3);
      ++taken[(place.example * 5 + place.head) * 3 + static_cast<std::uint32_t>(place.tile)];
    }
    EXPECT_EQ(taken, std::vector<int>(taken.size(), 1));
  }
}

}  // namespace

}  // namespace snug::backends::cuda
