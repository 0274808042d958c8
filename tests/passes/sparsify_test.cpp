#include "passes/model/sparsify.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"
#include "passes/model/add_update.h"

namespace snug {
namespace {

Program lowered(const Program& graph) {
  Program program = add_update(differentiate(graph), {});
  verify(program, "in a test");
  return program;
}

const State* find(const Program& graph, std::string_view name) {
  for (const State& state : graph.states) {
    if (state.name == name) return &state;
  }
  return nullptr;
}

Program wrn(double nonzero, SparseMethod method = SparseMethod::dsr) {
  return sparsify(frontend::build_zoo_model("wrn-28-2", {.batch = 2}), nonzero, {.method = method});
}

TEST(Sparsify, StoresAllConvolutionsButTheFirst) {
  const Program graph = wrn(0.3);
  EXPECT_EQ(ops::sparse_tensors(graph).size(), 24U);
  EXPECT_NE(find(graph, "stem.conv.weight"), nullptr);
  EXPECT_NE(find(graph, "head.fc.weight"), nullptr);
  EXPECT_EQ(find(graph, "group1.block1.conv1.weight"), nullptr);
  int dense = 0;
  int sparse = 0;
  for (const Node& node : graph.section(SectionKind::forward).nodes) {
    dense += node.op == &ops::conv2d ? 1 : 0;
    sparse += node.op == &ops::sparse_conv2d ? 1 : 0;
  }
  EXPECT_EQ(dense, 1);
  EXPECT_EQ(sparse, 24);
}

TEST(Sparsify, TakesTheBytesOfTheNonzerosAndTheirIndex) {
  const Program graph = wrn(0.3);
  // 1,451,520 weights, 1152 columns in the widest.
  EXPECT_EQ(find(graph, "sparse.weight")->type, (Type{.dtype = DType::f32, .shape = {435'456}}));
  EXPECT_EQ(find(graph, "sparse.columns")->type.bytes().count(), 435'456 * 11 / 8 + 8);
  EXPECT_EQ(find(graph, "sparse.rows")->type.elements(), 1792 + 1);
  EXPECT_EQ(graph.section(SectionKind::periodic).nodes.front().attributes.integer("target"),
            6000 * 10 / 3);  // the report's 20,000
  // The same density in every tensor, and the sum exact.
  std::int64_t sum = 0;
  const std::vector<std::int64_t>& nonzeros =
      graph.section(SectionKind::init).nodes.front().attributes.integers("tensor_nonzeros");
  const std::vector<ops::NamedSlot> tensors = ops::sparse_tensors(graph);
  ASSERT_EQ(nonzeros.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(nonzeros[i]), 0.3 * static_cast<double>(tensors[i].slot.shape.elements()), 1);
    sum += nonzeros[i];
  }
  EXPECT_EQ(sum, 435'456);
}

TEST(Sparsify, GivesTheStoreOneGradientAndOneMomentum) {
  const Program program = lowered(wrn(0.3));
  for (const char* name : {"sparse.weight", "sparse.weight.grad", "sparse.weight.momentum"})
    EXPECT_EQ(program.state(program.find_state(name)).type.elements(), 435'456) << name;
  EXPECT_FALSE(program.find_state("sparse.columns.grad").valid());
  const auto tensors = ops::sparse_tensors(program);
  ASSERT_EQ(tensors.size(), 24U);
  EXPECT_EQ(tensors[1].name, "group1.block1.conv2.weight");
  EXPECT_EQ(tensors[1].slot.first_row, 32);
  EXPECT_EQ(tensors[1].slot.shape, (Shape{32, 32, 3, 3}));
  ASSERT_NE(program.find_section(SectionKind::periodic), nullptr);
  EXPECT_EQ(program.find_section(SectionKind::periodic)->nodes.size(), 1U);
}

TEST(Sparsify, AFixedPatternHasNoRewiring) {
  const Program program = lowered(wrn(0.3, SparseMethod::fixed));
  EXPECT_EQ(program.find_section(SectionKind::periodic), nullptr);
  EXPECT_FALSE(program.find_state("sparse.threshold").valid());
}

TEST(Sparsify, TheProgramPrintsAndParsesBack) {
  const std::string text = print(lowered(wrn(0.1)));
  EXPECT_EQ(print(parse_program(text, ops::find)), text);
}

TEST(Sparsify, LeavesAloneWhatIsNotItsToMove) {
  frontend::GraphBuilder b("model", 2);
  ValueId x = b.conv2d("stem", b.features({3, 8, 8}, Layout::channels_last()), {.out_channels = 4, .padding = 1});
  x = b.conv2d("grouped", x, {.out_channels = 4, .padding = 1, .groups = 2});
  x = b.conv2d("frozen", x, {.out_channels = 4, .padding = 1});
  x = b.conv2d("plain", x, {.out_channels = 4, .padding = 1, .bias = true});
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 3));
  Program graph = std::move(b).finish();
  frontend::freeze(graph, {"frozen"});
  const Program sparse = sparsify(graph, 0.5);
  ASSERT_EQ(ops::sparse_tensors(sparse).size(), 1U);
  EXPECT_EQ(ops::sparse_tensors(sparse)[0].name, "plain.weight");
  EXPECT_NE(find(sparse, "plain.bias"), nullptr);
  lowered(sparse);  // verifies
}

TEST(Sparsify, AShareOfOneIsTheDenseModel) {
  const Program dense = frontend::build_zoo_model("small-cnn", {.batch = 2});
  EXPECT_EQ(print(lowered(sparsify(dense, 1))), print(lowered(dense)));
}

TEST(Sparsify, RefusesImpossibleSharesAndModelsWithoutConvolutions) {
  EXPECT_THROW(wrn(0), UserError);
  EXPECT_THROW(wrn(1.5), UserError);
  frontend::GraphBuilder b("mlp", 2);
  b.softmax_cross_entropy(b.linear("fc", b.features({8}), 3));
  EXPECT_THROW(sparsify(std::move(b).finish(), 0.5), UserError);
}

TEST(Sparsify, RewiringClearsAllThatTheUpdateKeepsOfTheOldValues) {
  const Program graph = wrn(0.3);
  const Program program = add_update(differentiate(graph), {.rule = "adamw"});
  verify(program, "in a test");
  const std::string text = print(*program.find_section(SectionKind::periodic));
  EXPECT_NE(text.find("sparse.weight.first_moment@1 = rewire("), std::string::npos) << text;
  for (const std::string name : {"sparse.weight.second_moment", "sparse.weight.updates"})
    EXPECT_NE(text.find(fmt::format("{0}@1 = fill({0}@0) {{value=0.0}}", name)), std::string::npos) << text;
}

// Only theirs are reset, so the correction of their bias begins anew, and that of the others does not.
TEST(Sparsify, SparseWeightsThatMoveCountTheirOwnUpdates) {
  const auto counts = [](SparseMethod method) {
    const Program program = add_update(differentiate(wrn(0.3, method)), {.rule = "adamw"});
    const Section& update = *program.find_section(SectionKind::update);
    std::map<std::string, std::string> read;
    for (const Node& node : update.nodes) {
      if (node.op == &ops::adamw) read[node.layer] = program.state(update.state_of(node.inputs[5])).name;
    }
    return read.at("sparse.weight") + " " + read.at("head.fc.weight");
  };
  EXPECT_EQ(counts(SparseMethod::dsr), "sparse.weight.updates updates");
  EXPECT_EQ(counts(SparseMethod::fixed), "updates updates");
}

TEST(Sparsify, AStoreOfWeightsDecaysThoughItHasOneDimension) {
  const Program program = add_update(differentiate(wrn(0.3)), {.rule = "adamw", .settings = {{"weight_decay", 0.1}}});
  std::map<std::string, double> decays;
  for (const Node& node : program.find_section(SectionKind::update)->nodes) {
    if (node.op->update != nullptr) decays[node.layer] = node.attributes.real("weight_decay");
  }
  EXPECT_EQ(decays.at("sparse.weight"), 0.1);
  EXPECT_EQ(decays.at("head.fc.weight"), 0.1);
  EXPECT_EQ(decays.at("head.fc.bias"), 0);
}

}  // namespace
}  // namespace snug
