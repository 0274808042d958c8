#include <algorithm>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "before_after.h"
#include "frontend/zoo.h"
#include "passes/checkpoint/chain_measures.h"
#include "passes/checkpoint/checkpoint.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/model/choose_recipes.h"
#include "passes/model/fuse.h"

namespace snug::testing {
namespace {

Program zoo_program(const std::string& name, std::int64_t batch, std::int64_t image_size = 0) {
  const AcceptingBackend backend;
  const Program graph = fuse(frontend::build_zoo_model(name, {.batch = batch, .image_size = image_size}));
  return eliminate_dead_nodes(differentiate(choose_recipes(graph)), {.backend = backend});
}

struct Result {
  std::int64_t bytes = 0;  // of micro, as placement will find them
  std::int64_t recomputed_flops = 0;
  double recomputed_seconds = 0;
  std::string text;
};

Result planned(const Program& program, const CheckpointStrategy& strategy, const CostTable& costs = {}) {
  const AcceptingBackend backend({.workspace = {{"conv2d_grad_weight", Bytes(50'000)}}});
  const PassContext context{.backend = backend, .methods = {.checkpoint = strategy}, .costs = costs};
  std::vector<PassTiming> timings;
  const Program after = run_passes(program, memory_passes(), context, {}, timings);
  const Section& micro = *after.find_section(SectionKind::micro);
  Result result{.bytes = fullest_bytes(micro), .text = print(after)};
  for (const Node& node : micro.nodes) {
    if (node.phase != Phase::recompute) continue;
    result.recomputed_flops += count_flops(micro, node);
    result.recomputed_seconds += node_seconds(costs, micro, node);
  }
  return result;
}

Result planned(const Program& program, std::string_view strategy) {
  return planned(program, parse_checkpoint_strategy(strategy));
}

Result optimal(const Program& program, std::int64_t limit) {
  return planned(program, CheckpointStrategy{.kind = CheckpointStrategy::Kind::optimal, .limit = Bytes(limit)});
}

TEST(OptimalCheckpoint, NeverRecomputesMoreThanAStrategyOfTheSameBytes) {
  for (const char* model : {"wrn-28-2", "preresnet-29", "resnet-18"}) {
    const Program program = zoo_program(model, 10, std::string_view(model) == "resnet-18" ? 64 : 0);
    for (const char* strategy : {"residual-2*", "residual-1*", "sqrt", "log", "no-bn"}) {
      const Result named = planned(program, strategy);
      const Result found = optimal(program, named.bytes);
      EXPECT_LE(found.bytes, named.bytes) << model << " " << strategy;
      EXPECT_LE(found.recomputed_flops, named.recomputed_flops) << model << " " << strategy;
      EXPECT_LE(found.recomputed_seconds, named.recomputed_seconds) << model << " " << strategy;
    }
  }
}

TEST(OptimalCheckpoint, IsMuchBetterThanTheReportsStrategyAtItsBytes) {
  const Program program = zoo_program("wrn-28-2", 10);
  const Result named = planned(program, "residual-2*");
  EXPECT_LT(static_cast<double>(optimal(program, named.bytes).recomputed_flops),
            0.85 * static_cast<double>(named.recomputed_flops));
}

TEST(OptimalCheckpoint, LessLimitIsFewerBytesAndMoreTime) {
  for (const char* model : {"wrn-28-2", "preresnet-56"}) {
    const Program program = zoo_program(model, 10);
    const std::int64_t most = planned(program, "none").bytes;
    const std::int64_t least = optimal(program, 1).bytes;
    EXPECT_LT(4 * least, most) << model;
    Result before;
    for (std::int64_t limit = least; limit <= most; limit += (most - least) / 9) {
      const Result found = optimal(program, limit);
      EXPECT_LE(found.bytes, limit) << model;
      EXPECT_GE(found.bytes, before.bytes) << model;
      if (before.bytes > 0) {
        EXPECT_LE(found.recomputed_seconds, before.recomputed_seconds) << model;
      }
      before = found;
    }
  }
}

TEST(OptimalCheckpoint, ALimitThatNothingKeepsGivesTheLeastBytes) {
  const Program program = zoo_program("wrn-10-1", 10);
  const Result least = optimal(program, 1);
  EXPECT_EQ(planned(program, "optimal").text, least.text);
  EXPECT_EQ(optimal(program, least.bytes / 2).text, least.text);
  for (const char* strategy : {"residual-1*", "residual-2*", "log", "sqrt", "no-bn", "every-1"}) {
    EXPECT_LE(least.bytes, planned(program, strategy).bytes) << strategy;
  }
}

TEST(OptimalCheckpoint, ALimitThatEverythingKeepsRecomputesNoProduct) {
  const Program program = zoo_program("wrn-10-1", 10);
  const Result found = optimal(program, planned(program, "none").bytes);
  EXPECT_EQ(found.recomputed_flops, planned(program, "every-1000").recomputed_flops);
}

TEST(OptimalCheckpoint, ASectionWithoutAForwardOrABackwardPassIsLeftAlone) {
  const AcceptingBackend backend;
  const PassContext context{.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy("optimal:1KB")}};
  for (const std::string_view nodes :
       {"", "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\nb@1 = sum_to_channels(%a) : state ; forward a\n",
        "%a = linear(x@0, w@0) : f32[2x4] activation ; backward a\nb@1 = sum_to_channels(%a) : state ; backward a\n"}) {
    const Program program = program_of(nodes);
    EXPECT_EQ(print(checkpoint(program, context)), print(program));
  }
}

TEST(OptimalCheckpoint, IsTheSameEveryTime) {
  const Program program = zoo_program("wrn-28-2", 10);
  EXPECT_EQ(optimal(program, 6'500'000).text, optimal(program, 6'500'000).text);
}

TEST(OptimalCheckpoint, FollowsTheCostsItIsGiven) {
  const Program program = zoo_program("wrn-28-2", 10);
  const CheckpointStrategy strategy = parse_checkpoint_strategy("optimal:20MB");
  const CostTable dear_traffic{.flops_per_second = 1e18, .bytes_per_second = 1e9};
  const CostTable dear_products{.flops_per_second = 1e9, .bytes_per_second = 1e18, .seconds_per_node = 0};
  EXPECT_LT(planned(program, strategy, dear_products).recomputed_flops,
            planned(program, strategy, dear_traffic).recomputed_flops);
}

TEST(ChenCheckpoint, TakesNoMoreThanSegmentsOfEqualBytes) {
  for (const char* model : {"wrn-28-2", "preresnet-56", "vgg-16", "resnet-18"}) {
    const bool is_large = std::string_view(model) == "vgg-16" || std::string_view(model) == "resnet-18";
    const Program program = zoo_program(model, 4, is_large ? 64 : 0);
    const Result none = planned(program, "none");
    const Result chen = planned(program, "chen");
    EXPECT_LT(chen.bytes, none.bytes) << model;
    EXPECT_LE(static_cast<double>(chen.bytes), 1.02 * static_cast<double>(planned(program, "sqrt").bytes)) << model;
    EXPECT_GT(chen.recomputed_flops, 0) << model;
  }
}

}  // namespace
}  // namespace snug::testing
