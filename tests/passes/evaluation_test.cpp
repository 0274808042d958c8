// What is left of evaluation after the passes: forward alone, with running statistics, plain images and no dropout.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "before_after.h"
#include "frontend/zoo.h"
#include "passes/model/choose_recipes.h"

namespace snug::testing {
namespace {

Program compiled(const std::string& model) {
  const AcceptingBackend backend;
  const Program graph = frontend::build_zoo_model(model, {.batch = 2, .image_size = 32});
  std::vector<PassTiming> timings;
  return run_passes(differentiate(choose_recipes(graph)), memory_passes(), {.backend = backend}, {}, timings);
}

std::multiset<std::string_view> ops_of(const Section& section) {
  std::multiset<std::string_view> ops;
  for (const Node& node : section.nodes) ops.insert(node.op->name);
  return ops;
}

TEST(Evaluation, ReadsRunningStatisticsAndMovesNone) {
  const Program program = compiled("wrn-10-1");
  const Section& eval = *program.find_section(SectionKind::eval);
  EXPECT_EQ(ops_of(eval).count("batch_norm_statistics"), 0U);
  EXPECT_EQ(ops_of(eval).count("batch_norm_running"), 0U);
  EXPECT_EQ(ops_of(eval).count("batch_norm_apply"), 7U);
  for (const Node& node : eval.nodes) {
    if (node.op->name == "batch_norm_apply") {
      EXPECT_EQ(eval.value(node.inputs[1]).name, node.layer + ".running_mean");
      EXPECT_EQ(eval.value(node.inputs[2]).name, node.layer + ".running_var");
      EXPECT_EQ(eval.value(node.inputs[1]).version, 0);
    }
    for (const ValueId output : node.outputs) EXPECT_TRUE(!eval.value(output).is_state() || eval.value(output).name == "metrics");
  }
}

TEST(Evaluation, ReadsPlainImages) {
  const Program program = compiled("small-cnn");
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      if (node.op->name != "image_input") continue;
      EXPECT_EQ(node.attributes.integer("augment"), section.kind == SectionKind::micro ? 1 : 0);
    }
    EXPECT_LE(ops_of(section).count("image_input"), 1U);
  }
  EXPECT_EQ(ops_of(*program.find_section(SectionKind::eval)).count("image_input"), 1U);
}

TEST(Evaluation, HasNoDropout) {
  const Program program = compiled("vgg-16");
  EXPECT_EQ(ops_of(*program.find_section(SectionKind::micro)).count("dropout"), 4U);  // two, there and back
  EXPECT_EQ(ops_of(*program.find_section(SectionKind::eval)).count("dropout"), 0U);
}

TEST(Evaluation, KeepsNothingForBackward) {
  const Program program = compiled("vgg-16");
  const auto ops = ops_of(*program.find_section(SectionKind::eval));
  EXPECT_EQ(ops.count("sign_bits") + ops.count("max_pool_argmax"), 0U);
  EXPECT_GT(ops_of(*program.find_section(SectionKind::micro)).count("max_pool_argmax"), 0U);
}

}  // namespace
}  // namespace snug::testing
