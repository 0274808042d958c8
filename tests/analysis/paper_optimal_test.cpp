#include "analysis/paper_optimal.h"

#include <gtest/gtest.h>

#include "frontend/zoo.h"

namespace snug::paper {
namespace {

Accounting account_for(const Program& graph, std::string_view strategy, const Options& options = {}) {
  return account(graph, parse_strategy(strategy), options);
}

Accounting within(const Program& graph, Bytes limit, const Options& options = {}) {
  return account(graph, {.kind = Strategy::Kind::optimal, .limit = limit}, options);
}

// The largest value of a residual unit: the report's peaks are multiples of it, and the network's input.
std::int64_t largest_carried(const PaperChain& chain) {
  std::int64_t largest = 0;
  for (const ChainLink& link : chain.links) largest = std::max(largest, link.carried_bytes);
  return largest;
}

// Groups of two units, as residual-2* has them: what leads to a group's last unit is run again inside the group.
ChainPlan residual_2_star(const PaperChain& chain) {
  ChainPlan plan;
  const std::size_t head = chain.links.size() - 1;
  plan.region.assign(chain.links.size(), 0);
  for (const ChainLink& link : chain.links) plan.mode.push_back(link.modes.size() - 1);
  for (std::size_t first = 1; first < head; first += 2) {
    const std::size_t group = plan.parent.size();
    plan.parent.push_back(0);
    const std::size_t last = std::min(first + 1, head - 1);
    plan.region[last] = group;
    for (std::size_t link = first == 1 ? 0 : first; link < last; ++link) {
      plan.region[link] = plan.parent.size();
      plan.parent.push_back(group);
    }
  }
  return plan;
}

// The chain's figures are the report's rules: its own strategy, as a plan of the chain, has its own accounting.
TEST(PaperOptimal, TheReportsStrategyAsAPlanOfTheChainHasItsAccounting) {
  for (const char* model : {"wrn-28-2", "wrn-16-4"}) {
    const Program graph = frontend::build_zoo_model(model, {.batch = 4});
    for (const std::int64_t value_bytes : {4, 2}) {
      const Options options{.value_bytes = value_bytes};
      const PaperChain chain = chain_of(network_of(graph), options);
      const ChainFigures figures = run_chain(chain.links, residual_2_star(chain));
      const Accounting named = account_for(graph, "residual-2*", options);
      EXPECT_EQ(figures.peak_bytes + chain.input_bytes.count(), named.activations.total().count()) << model;
      EXPECT_EQ(static_cast<std::int64_t>(figures.seconds), named.flops.recompute) << model;
    }
  }
}

TEST(PaperOptimal, LeavesLessOnTheTableThanTheReport) {
  const Program graph = frontend::build_zoo_model("wrn-28-2", {.batch = 10});
  for (const std::int64_t value_bytes : {4, 2}) {
    const Options options{.value_bytes = value_bytes};
    const Accounting named = account_for(graph, "residual-2*", options);
    const Bytes unit(largest_carried(chain_of(network_of(graph), options)));
    EXPECT_GT(named.flops.ratio(), 1.30);

    const Accounting same = within(graph, named.activations.total(), options);  // 5 units and the input
    EXPECT_LE(same.activations.total(), named.activations.total());
    EXPECT_LE(same.flops.ratio(), 1.23);

    const Bytes less = named.activations.total() - unit;  // 4 units
    const Accounting smaller = within(graph, less, options);
    EXPECT_LE(smaller.activations.total(), less);
    EXPECT_LE(smaller.flops.ratio(), 1.29);
    RecordProperty(value_bytes == 4 ? "ratio_at_5" : "ratio_at_5_fp16", std::to_string(same.flops.ratio()));
    RecordProperty(value_bytes == 4 ? "ratio_at_4" : "ratio_at_4_fp16", std::to_string(smaller.flops.ratio()));
  }
}

TEST(PaperOptimal, NeverTakesMoreThanAStrategyOfTheReport) {
  for (const char* model : {"wrn-28-2", "preresnet-164", "resnet-18", "resnet-50"}) {
    const Program graph = frontend::build_zoo_model(model, {.batch = 2});
    for (const char* strategy : {"no-bn", "residual-1*", "residual-2*", "residual-3*"}) {
      const Accounting named = account_for(graph, strategy);
      const Accounting found = within(graph, named.activations.total());
      EXPECT_LE(found.activations.total(), named.activations.total()) << model << " " << strategy;
      EXPECT_LE(found.flops.recompute, named.flops.recompute) << model << " " << strategy;
      EXPECT_EQ(found.states.total(), named.states.total());
    }
  }
}

TEST(PaperOptimal, WithRoomForAllNothingIsRecomputed) {
  for (const char* model : {"wrn-10-1", "vgg-16", "small-cnn"}) {
    const Program graph = frontend::build_zoo_model(model, {.batch = 2});
    EXPECT_EQ(within(graph, account_for(graph, "none").activations.total()).flops.recompute, 0) << model;
  }
}

TEST(PaperOptimal, LessRoomIsMoreFlopsDownToTheLeast) {
  const Program graph = frontend::build_zoo_model("vgg-16", {.batch = 2, .image_size = 64});
  const Bytes most = account_for(graph, "none").activations.total();
  std::int64_t before = -1;
  for (int tenths = 10; tenths >= 1; --tenths) {
    const Bytes limit(most.count() * tenths / 10);
    const Accounting found = within(graph, limit);
    EXPECT_GE(found.flops.recompute, before) << tenths;
    before = found.flops.recompute;
  }
  // Best effort: with room for nothing, the least there is.
  EXPECT_EQ(within(graph, Bytes(1)).activations.total(), within(graph, Bytes(2)).activations.total());
  EXPECT_LT(within(graph, Bytes(1)).activations.total(), most);
}

}  // namespace
}  // namespace snug::paper
