#include "passes/model/narrow.h"

#include <utility>

#include <gtest/gtest.h>

#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ir/op.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace snug {
namespace {

// What each state of a half-precision model is stored in.
TEST(Narrow, NormalizationStaysInSinglePrecision) {
  for (const auto& [name, half] :
       {std::pair{"wrn-10-1", DType::f16}, std::pair{"wrn-10-1", DType::bf16}, std::pair{"resnet-18", DType::bf16},
        std::pair{"vgg-16", DType::f16}, std::pair{"small-cnn", DType::bf16}}) {
    const Program model = narrow(frontend::build_zoo_model(name, {.batch = 2, .image_size = 32}), half);
    for (const State& state : model.states) {
      if (state.role != Role::parameter && state.role != Role::statistic) continue;
      const bool of_norm = state.role == Role::statistic ||
                           model.find_state(state.name.substr(0, state.name.rfind('.')) + ".running_mean").valid();
      EXPECT_EQ(state.type.dtype, of_norm ? DType::f32 : half) << name << " " << state.name;
    }
    for (const Node& node : model.section(SectionKind::forward).nodes) {
      const Type& first = model.section(SectionKind::forward).value(node.outputs.front()).type;
      const bool of_norm = node.op->name.starts_with("batch_norm_") && node.op->name != "batch_norm_apply";
      if (node.op->loss != nullptr || first.dtype == DType::f64) continue;
      EXPECT_EQ(first.dtype, of_norm ? DType::f32 : half) << name << " " << node.layer;
    }
  }
}

TEST(Narrow, ToSinglePrecisionChangesNothing) {
  const Program model = frontend::build_zoo_model("small-cnn", {.batch = 2});
  EXPECT_EQ(print(narrow(model, DType::f32)), print(model));
}

TEST(Narrow, ToDoublePrecisionIsEverything) {
  const Program model = narrow(frontend::build_zoo_model("small-cnn", {.batch = 2}), DType::f64);
  for (const State& state : model.states) EXPECT_NE(state.type.dtype, DType::f32) << state.name;
  EXPECT_NE(print(model).find("bits=64"), std::string::npos);
}

TEST(Narrow, FeaturesAreStagedAsTheyAreComputedWith) {
  frontend::GraphBuilder b("mlp", 2);
  b.softmax_cross_entropy(b.linear("fc", b.features({8}), 3));
  const Program model = narrow(std::move(b).finish(), DType::bf16);
  EXPECT_EQ(to_string(model.state(model.find_state("features")).type), "bf16[2x8]");
  EXPECT_EQ(to_string(model.state(model.find_state("labels")).type), "i32[2]");
}

TEST(Narrow, WhatItMakesIsWellFormedAndReadsBack) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f64}) {
    const Program model = narrow(frontend::build_zoo_model("resnet-18", {.batch = 2, .image_size = 32}), dtype);
    EXPECT_EQ(find_defect(model), std::nullopt);
    EXPECT_EQ(print(parse_program(print(model), ops::find)), print(model));
  }
}

}  // namespace
}  // namespace snug
