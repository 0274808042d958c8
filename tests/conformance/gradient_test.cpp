#include <map>
#include <set>

#include <gtest/gtest.h>

#include "conformance/gradient_check.h"
#include "ops/ops.h"
#include "passes/model/fuse.h"

namespace snug::conformance {

namespace {

struct Combination {
  GradientCase test;
  const OpDef* op;
  int recipe;
};

// Every recipe of every op that a case contains. Deduced from the graphs, so that a new recipe of an op is checked without being
// listed.
std::vector<Combination> combinations() {
  std::vector<Combination> result;
  for (const GradientCase& test : all_cases()) {
    const Program graph = build_graph(test);
    std::set<const OpDef*> seen;
    for (const Node& node : graph.section(SectionKind::forward).nodes) {
      if (node.op->gradients.empty() || !seen.insert(node.op).second) continue;
      for (int r = 0; r < static_cast<int>(node.op->gradients.size()); ++r) result.push_back({test, node.op, r});
    }
  }
  return result;
}

class Gradient : public testing::TestWithParam<Combination> {};

TEST_P(Gradient, AgreesWithCentralDifferences) {
  const auto& [test, op, recipe] = GetParam();
  const GradientReport report = check_gradients(test, *op, recipe);
  EXPECT_GT(report.compared, 0);
  EXPECT_LT(report.worst_error, 2e-8) << report.worst_place;
}

std::string name_of_combination(const testing::TestParamInfo<Combination>& combination) {
  const auto& [test, op, recipe] = combination.param;
  return test.name + "_by_" + std::string(op->name) + "_" + std::string(op->gradients[static_cast<std::size_t>(recipe)].name);
}

INSTANTIATE_TEST_SUITE_P(EveryOpAndRecipe, Gradient, testing::ValuesIn(combinations()), name_of_combination);

TEST(Gradients, EveryRecipeOfEveryOpHasACase) {
  std::map<std::string, std::set<int>> checked;
  for (const Combination& combination : combinations()) checked[std::string(combination.op->name)].insert(combination.recipe);
  for (const OpDef* op : ops::all()) {
    for (int r = 0; r < static_cast<int>(op->gradients.size()); ++r) {
      EXPECT_TRUE(checked[std::string(op->name)].contains(r)) << op->name << " recipe " << r;
    }
  }
}

class Passes : public testing::TestWithParam<GradientCase> {};

TEST_P(Passes, InPlaceAndSharingDoNotChangeABit) {
  const std::vector<std::byte> plain = gradient_bytes(GetParam(), {"accumulate_in_place", "share_bytes"});
  EXPECT_EQ(gradient_bytes(GetParam(), {}), plain);
  EXPECT_EQ(gradient_bytes(GetParam(), {"share_bytes"}), plain);
  EXPECT_EQ(gradient_bytes(GetParam(), {"accumulate_in_place"}), plain);
  EXPECT_EQ(gradient_bytes(GetParam(), {"eliminate_dead_nodes"}), plain);
}

TEST_P(Passes, FusingReluDoesNotChangeABit) { EXPECT_EQ(gradient_bytes(GetParam(), {}, fuse), gradient_bytes(GetParam(), {})); }

std::string name_of_case(const testing::TestParamInfo<GradientCase>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(EveryCase, Passes, testing::ValuesIn(all_cases()), name_of_case);

}  // namespace

}  // namespace snug::conformance
