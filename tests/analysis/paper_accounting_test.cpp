// Figures named "report" are printed in Sohoni et al., "Low-Memory Neural Network Training" (Table 3, Figure 5 and
// sections 3.4, 4.2); those named "oracle" come from an independent script that finds them from the architecture alone, to the
// byte. MB is 1e6.
#include "analysis/paper_accounting.h"

#include <array>
#include <cmath>
#include <map>
#include <ostream>

#include <gtest/gtest.h>

#include "analysis/paper_network.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/op.h"
#include <snug/error.h>

namespace snug::paper {
namespace {

Program wrn_28_2(std::int64_t batch) { return frontend::build_zoo_model("wrn-28-2", {.batch = batch}); }

Accounting account_for(std::string_view model, std::string_view strategy, std::int64_t batch, const Options& options = {}) {
  return account(frontend::build_zoo_model(model, {.batch = batch}), parse_strategy(strategy), options);
}

double megabytes(Bytes size) { return static_cast<double>(size.count()) / 1e6; }

// ---------------------------------------------------------------- WRN-28-2, fp32, dense

TEST(PaperStates, ThreeCopiesOfWrnAreTheOraclesBytes) {
  const StateBytes states = state_bytes(wrn_28_2(100), {});
  EXPECT_EQ(states.model.count(), 5'841'896);         // oracle: model 5.8419 MB, (1,456,858 + 3,616) * 4
  EXPECT_EQ(states.optimizer().count(), 11'683'792);  // oracle: optimizer 11.6838 MB
  EXPECT_EQ(states.gradient, states.model);
  EXPECT_EQ(states.momentum, states.model);
}

TEST(PaperTotal, BaselineIsTheReports) {
  const Accounting baseline = account_for("wrn-28-2", "none", 100);
  EXPECT_EQ(baseline.activations.total().count(), 387'276'800);  // oracle: 953,344 values and 475,136 bits an image
  EXPECT_EQ(baseline.activations.layer, "head.relu");            // oracle: final relu
  EXPECT_EQ(baseline.total().count(), 404'802'488);              // oracle: 404.8025 MB
  EXPECT_NEAR(megabytes(baseline.total()), 404.8, 0.05);         // report: 404.8 MB
}

struct Strategic {
  const char* strategy;
  std::int64_t activation_bytes;  // oracle, batch 100
  std::int64_t recomputed_flops;  // oracle, an image
  double smaller;                 // oracle: activations against `none`
  double flops_ratio;             // oracle
};
void PrintTo(const Strategic& row, std::ostream* out) { *out << row.strategy; }

class StrategyRows : public testing::TestWithParam<Strategic> {};

TEST_P(StrategyRows, ActivationsAndFlopsAreTheOracles) {
  const Strategic& row = GetParam();
  const Accounting got = account_for("wrn-28-2", row.strategy, 100);
  EXPECT_EQ(got.activations.total().count(), row.activation_bytes);
  EXPECT_EQ(got.flops.forward, 429'599'232);   // oracle: total fwd
  EXPECT_EQ(got.flops.backward, 856'175'616);  // oracle: total bwd
  EXPECT_EQ(got.flops.recompute, row.recomputed_flops);
  EXPECT_NEAR(387'276'800.0 / static_cast<double>(got.activations.total().count()), row.smaller, 0.005);
  EXPECT_NEAR(got.flops.ratio(), row.flops_ratio, 0.00005);
}

// residual-3* and above are not printed by the oracle's script; its functions were called for them.
INSTANTIATE_TEST_SUITE_P(Wrn, StrategyRows,
                         testing::Values(Strategic{"none", 387'276'800, 0, 1.00, 1.0000},
                                         Strategic{"no-bn", 194'662'400, 1'425'408, 1.99, 1.0011},
                                         Strategic{"residual-1*", 99'635'200, 200'491'008, 3.89, 1.1559},
                                         Strategic{"residual-2*", 67'174'400, 398'786'560, 5.77, 1.3102},
                                         Strategic{"residual-3*", 73'728'000, 483'770'368, 5.25, 1.3762},
                                         Strategic{"residual-4*", 86'835'200, 512'090'112, 4.46, 1.3983},
                                         Strategic{"residual-5*", 86'835'200, 559'308'800, 4.46, 1.4350},
                                         Strategic{"residual-12*", 106'188'800, 587'636'736, 3.65, 1.4570}));

TEST(PaperStrategies, PrintedClaimsOfTheReportHold) {
  const auto activations = [](std::string_view strategy) {
    return megabytes(account_for("wrn-28-2", strategy, 100).activations.total());
  };
  const double all = activations("none");
  EXPECT_NEAR(all / activations("residual-2*"), 5.8, 0.05);                             // report: 5.8x
  EXPECT_NEAR(account_for("wrn-28-2", "residual-2*", 100).flops.ratio(), 1.30, 0.013);  // report: about 30%
  EXPECT_NEAR(1 - activations("no-bn") / all, 0.497, 0.0005);                           // report: nearly 50%
  EXPECT_LT(account_for("wrn-28-2", "no-bn", 100).flops.ratio(), 1.01);                 // report: less than 1%
}

TEST(PaperStrategies, FullestMomentsAreTheOracles) {
  EXPECT_EQ(account_for("wrn-28-2", "residual-1*", 4).activations.layer, "group3.block4.conv2");  // oracle: conv2 b12
  EXPECT_EQ(account_for("wrn-28-2", "residual-2*", 4).activations.layer, "group1.block4.conv2");  // oracle: conv2 b4
  // oracle: conv1 b12; as many bytes are needed at the last ReLU, and backward comes to that first.
  EXPECT_EQ(account_for("wrn-28-2", "no-bn", 4).activations.layer, "head.relu");
}

TEST(PaperFlops, EveryKindOfLayerIsTheOracles) {
  const Program graph = wrn_28_2(3);
  const Network network = network_of(graph);
  struct Sum {
    std::int64_t forward = 0, backward = 0;
    bool operator==(const Sum&) const = default;
  };
  std::map<std::string_view, Sum> sums;
  for (const Op& op : network.ops) {
    Sum& sum = sums[graph.section(SectionKind::forward).nodes[op.node].op->name];
    sum.forward += op.forward_flops;
    sum.backward += op.backward_flops;
  }
  EXPECT_EQ(network.ops.front().forward_flops, 884'736);  // the stem, whose input wants no gradient
  EXPECT_EQ(network.ops.front().backward_flops, 884'736);
  EXPECT_EQ(sums["conv2d"], (Sum{884'736 + 424'673'280, 884'736 + 849'346'560}));
  EXPECT_EQ(sums["linear"], (Sum{2'560, 5'120}));
  EXPECT_EQ(sums["batch_norm_apply"], (Sum{3'325'952, 5'226'496}));
  EXPECT_EQ(sums["relu"], (Sum{475'136, 475'136}));
  EXPECT_EQ(sums["add"], (Sum{229'376, 229'376}));
  EXPECT_EQ(sums["global_avg_pool"], (Sum{8'192, 8'192}));
  EXPECT_EQ(sums["shortcut"], Sum{});
  EXPECT_EQ(sums["softmax_cross_entropy"], Sum{});
}

// ---------------------------------------------------------------- WRN-28-2, fp16, residual-2*: the rows of Table 3

struct TableRow {
  double nonzero;
  std::int64_t microbatch;
  double oracle_bytes;
  double report_megabytes;
  double report_reduction;
};
void PrintTo(const TableRow& row, std::ostream* out) { *out << 100 * row.nonzero << "%, microbatch " << row.microbatch; }

class Table3Rows : public testing::TestWithParam<TableRow> {};

TEST_P(Table3Rows, TotalsAreTheReports) {
  const TableRow& row = GetParam();
  const Accounting got = account_for("wrn-28-2", "residual-2*", row.microbatch, {.value_bytes = 2, .nonzero = row.nonzero});
  EXPECT_NEAR(static_cast<double>(got.total().count()), row.oracle_bytes, 1);
  EXPECT_NEAR(megabytes(got.total()), row.report_megabytes, 0.05);
  EXPECT_NEAR(404'802'488.0 / static_cast<double>(got.total().count()), row.report_reduction, 0.051);
}

INSTANTIATE_TEST_SUITE_P(Fp16, Table3Rows,
                         testing::Values(TableRow{1.0, 100, 42'598'236, 42.6, 9.5}, TableRow{1.0, 10, 12'185'436, 12.2, 33.2},
                                         TableRow{0.3, 10, 6'672'418.825, 6.7, 60.7}, TableRow{0.2, 10, 5'608'316.425, 5.6, 72.2},
                                         TableRow{0.2, 4, 3'580'796.425, 3.6, 113.0},
                                         TableRow{0.1, 4, 2'516'694.025, 2.5, 160.8}));

TEST(PaperTable3, ClassesOfTheSmallestAccurateRow) {
  const Accounting row = account_for("wrn-28-2", "residual-2*", 10, {.value_bytes = 2, .nonzero = 0.3});
  EXPECT_NEAR(static_cast<double>(row.states.model.count()), 1'486'650.825, 1);  // oracle; report: about 4x less
  EXPECT_EQ(row.states.optimizer().count(), 1'806'568);                          // oracle; report: about 6x less
  EXPECT_EQ(row.activations.total().count(), 3'379'200);                         // oracle
  EXPECT_NEAR(387'276'800.0 / 3'379'200.0, 115, 0.5);                            // report: 115x less
}

// The oracle's table of designs: fp16 in microbatches of 10 and of 1, dense and with 30% of the weights.
TEST(PaperFp16, DesignsAreTheOracles) {
  struct Design {
    const char* strategy;
    std::int64_t bytes_an_image;
    std::array<double, 4> totals;  // MB: dense 10, dense 1, sparse 10, sparse 1
  };
  for (const Design& design :
       {Design{"residual-2*", 337'920, {12.19, 9.14, 6.67, 3.63}}, Design{"residual-1*", 498'688, {13.79, 9.30, 8.28, 3.79}}}) {
    std::size_t at = 0;
    for (const double nonzero : {1.0, 0.3}) {
      for (const std::int64_t microbatch : {10, 1}) {
        const Accounting got = account_for("wrn-28-2", design.strategy, microbatch, {.value_bytes = 2, .nonzero = nonzero});
        EXPECT_EQ(got.activations.total().count(), microbatch * design.bytes_an_image) << design.strategy;
        EXPECT_NEAR(megabytes(got.total()), design.totals[at++], 0.0051) << design.strategy;
      }
    }
  }
}

TEST(PaperFp16, ThreeDenseCopiesAloneCapTheReduction) {
  const StateBytes states = state_bytes(wrn_28_2(1), {.value_bytes = 2});
  EXPECT_EQ(states.total().count(), 8'806'236);  // oracle: 8.806 MB
  EXPECT_NEAR(404'802'488.0 / 8'806'236.0, 46, 0.05);
}

// ---------------------------------------------------------------- other networks

struct OtherNetwork {
  const char* model;
  const char* strategy;
  std::int64_t values, bits;  // oracle's functions, an image
  std::int64_t recomputed_flops;
};
void PrintTo(const OtherNetwork& row, std::ostream* out) { *out << row.model << " " << row.strategy; }

class PaperOtherNetworks : public testing::TestWithParam<OtherNetwork> {};

TEST_P(PaperOtherNetworks, AreCountedAsTheOracleDoes) {
  const OtherNetwork& row = GetParam();
  const Accounting got = account_for(row.model, row.strategy, 8);
  EXPECT_EQ(got.activations.total().count(), 8 * (4 * row.values + row.bits / 8));
  EXPECT_EQ(got.flops.recompute, row.recomputed_flops);
}

INSTANTIATE_TEST_SUITE_P(Wrn, PaperOtherNetworks,
                         testing::Values(OtherNetwork{"wrn-16-4", "none", 953'344, 475'136, 0},
                                         OtherNetwork{"wrn-16-4", "no-bn", 494'592, 16'384, 1'425'408},
                                         OtherNetwork{"wrn-16-4", "residual-1*", 265'216, 65'536, 323'174'400},
                                         OtherNetwork{"wrn-16-4", "residual-2*", 281'600, 65'536, 644'153'344},
                                         OtherNetwork{"wrn-10-1", "none", 150'528, 73'728, 0},
                                         OtherNetwork{"wrn-10-1", "no-bn", 84'992, 16'384, 221'184},
                                         OtherNetwork{"wrn-10-1", "residual-1*", 68'608, 16'384, 10'543'104},
                                         // Three units: the last segment has but one, and the head.
                                         OtherNetwork{"wrn-10-1", "residual-2*", 68'608, 16'384, 27'078'656}));

TEST(ResidualUnits, AreFoundFromTheGraphAlone) {
  const std::array<std::pair<std::string_view, std::size_t>, 8> networks{{{"wrn-28-2", 12},
                                                                          {"wrn-10-1", 3},
                                                                          {"preresnet-110", 54},
                                                                          {"preresnet-164", 54},
                                                                          {"resnet-18", 8},
                                                                          {"resnet-50", 16},
                                                                          {"vgg-16", 0},
                                                                          {"small-cnn", 0}}};
  for (const auto& [model, count] : networks) {
    Program graph = frontend::build_zoo_model(model, {.batch = 2});
    const std::vector<Unit> units = residual_units(network_of(graph));
    EXPECT_EQ(units.size(), count) << model;
    EXPECT_EQ(has_residual_units(graph), count > 0) << model;
    for (Node& node : graph.section(SectionKind::forward).nodes) node.layer = "nameless";
    EXPECT_EQ(residual_units(network_of(graph)), units) << model;
  }
}

TEST(ResidualUnits, EndWithTheirSumOrTheReluBehindIt) {
  for (const auto& [model, last] : {std::pair("wrn-28-2", "add"), std::pair("resnet-18", "relu")}) {
    const Program graph = frontend::build_zoo_model(model, {.batch = 2});
    const Network network = network_of(graph);
    for (const Unit& unit : residual_units(network)) {
      EXPECT_EQ(graph.section(SectionKind::forward).nodes[network.ops[unit.end - 1].node].op->name, last) << model;
      EXPECT_EQ(crossing_values(network, unit.begin).size(), 1U);
      EXPECT_EQ(crossing_values(network, unit.end).size(), 1U);
    }
  }
}

TEST(PaperStrategies, EveryModelHasEveryStrategy) {
  for (const std::string_view model : {"wrn-28-2", "preresnet-164", "resnet-18", "resnet-50", "vgg-16", "small-cnn"}) {
    const Program graph = frontend::build_zoo_model(model, {.batch = 2, .image_size = 64});
    const Accounting everything = account(graph, {});
    for (const std::string_view name :
         {"no-bn", "every-1", "every-7", "residual-1", "residual-3", "residual-1*", "residual-3*"}) {
      const Strategy strategy = parse_strategy(name);
      EXPECT_EQ(name_of(strategy), name);
      if (name.starts_with("residual") && !has_residual_units(graph)) {
        EXPECT_THROW(account(graph, strategy), UserError);
        continue;
      }
      const Accounting got = account(graph, strategy);
      EXPECT_EQ(got.states.total(), everything.states.total());
      EXPECT_EQ(got.flops.forward, everything.flops.forward);
      EXPECT_GT(got.activations.total(), Bytes(0));
      EXPECT_LE(got.flops.ratio(),
                1 + 2.0 * static_cast<double>(got.flops.forward) / static_cast<double>(got.flops.forward + got.flops.backward))
          << model << " " << name;
      if (name == "every-1") continue;  // keeps what `none` need not: what every op reads
      EXPECT_LE(got.activations.total().count(), everything.activations.total().count()) << model << " " << name;
    }
  }
}

// ---------------------------------------------------------------- by hand

// Two examples: 16 values in, 32 behind `a` and its ReLU, 8 logits.
Program two_layers() {
  frontend::GraphBuilder b("two", 2);
  const ValueId hidden = b.relu("relu", b.linear("a", b.features({8}), 16, {.bias = false}));
  b.softmax_cross_entropy(b.linear("b", hidden, 4, {.bias = false}));
  return std::move(b).finish();
}

TEST(PaperRules, TwoLayersByHand) {
  const Accounting got = account(two_layers(), {});
  EXPECT_EQ(got.states.model.count(), 4 * (8 * 16 + 16 * 4));
  // Input, what `b` reads, and the ReLU's bits; and the logits, as the loss's or as their gradient.
  EXPECT_EQ(got.activations.total().count(), 4 * (16 + 32 + 8) + 32 / 8);
  EXPECT_EQ(got.flops.forward, 2 * 8 * 16 + 16 + 2 * 16 * 4);
  EXPECT_EQ(got.flops.backward, 2 * 8 * 16 + 16 + 2 * 2 * 16 * 4);  // nobody wants the input's gradient
}

TEST(PaperRules, EverySecondOpByHand) {
  const Accounting got = account(two_layers(), parse_strategy("every-2"));
  // Checkpoints: the input, and what the ReLU, the second op that keeps something, reads. From there to the end: `b`'s input and
  // the ReLU's bits. And the logits.
  EXPECT_EQ(got.activations.total().count(), 4 * (16 + 32 + 32 + 8) + 32 / 8);
  EXPECT_EQ(got.flops.recompute, 16 + 2 * 16 * 4);  // the ReLU and `b`
}

TEST(PaperRules, FrozenWeightsHaveNoCopiesAndKeepNoInput) {
  Program graph = wrn_28_2(4);
  const Accounting whole = account(graph, {});
  frontend::freeze(graph, {"stem"});
  const Accounting frozen = account(graph, {});
  EXPECT_EQ(frozen.states.model, whole.states.model);
  EXPECT_EQ((whole.states.gradient - frozen.states.gradient).count(), 4 * 432);
  EXPECT_EQ((whole.activations.total() - frozen.activations.total()).count(), 4 * 4 * 3'072);
  EXPECT_EQ(whole.flops.backward - frozen.flops.backward, 884'736);
}

TEST(PaperRules, WhatTheInputIsStagedAsDoesNotCount) {
  const Program features = frontend::build_zoo_model("wrn-28-2", {.batch = 4, .staged_as_bytes = false});
  EXPECT_EQ(account(features, {}).total(), account(wrn_28_2(4), {}).total());
}

TEST(PaperStrategies, BadNamesAndOptionsAreRefused) {
  for (const std::string_view name :
       {"", "sqrt", "optimal", "optimal:", "optimal:0", "every", "every-", "every-0", "every-2*", "residual-", "residual--1",
        "residual-2**", "residual-two", "no-bn*", "residual-99999999999999999999"}) {
    EXPECT_THROW(parse_strategy(name), UserError) << name;
  }
  const Program graph = two_layers();
  EXPECT_THROW(account(graph, {}, {.value_bytes = 1}), UserError);
  EXPECT_THROW(account(graph, {}, {.nonzero = 0}), UserError);
  EXPECT_THROW(account(graph, {}, {.nonzero = 1.5}), UserError);
  EXPECT_THROW(account(graph, {}, {.nonzero = std::nan("")}), UserError);
}

}  // namespace
}  // namespace snug::paper
