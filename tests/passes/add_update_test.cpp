// The section that moves the parameters.
#include "passes/model/add_update.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "../autodiff/graphs.h"
#include "base/error.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "passes/model/narrow.h"

namespace snug::testing {
namespace {

Program two_layers() {
  return model_on_vectors([](GraphBuilder& b, ValueId x) { return b.relu("r", b.linear("a", x, 4)); });
}

TEST(AddUpdate, APlainStepForEveryParameter) {
  const Program program = add_update(differentiate(two_layers()),
                                     {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0.1, .nesterov = false})});
  verify(program, "in a test");
  EXPECT_EQ(nodes_of(program, SectionKind::update, Phase::update),
            "a.weight@1, a.weight.grad@1 = sgd(a.weight@0, a.weight.grad@0, scalars@0) "
            "{momentum=0.0, nesterov=0, weight_decay=0.1} : state, state ; update a.weight\n"
            "a.bias@1, a.bias.grad@1 = sgd(a.bias@0, a.bias.grad@0, scalars@0) "
            "{momentum=0.0, nesterov=0, weight_decay=0.1} : state, state ; update a.bias\n"
            "head.weight@1, head.weight.grad@1 = sgd(head.weight@0, head.weight.grad@0, scalars@0) "
            "{momentum=0.0, nesterov=0, weight_decay=0.1} : state, state ; update head.weight\n");
}

TEST(AddUpdate, MomentumIsAStateOfItsOwnForEveryParameter) {
  const Program program = add_update(differentiate(two_layers()),
                                     {.settings = ops::sgd_settings({.momentum = 0.9, .weight_decay = 0, .nesterov = true})});
  for (const char* name : {"a.weight", "a.bias", "head.weight"}) {
    const StateId momentum = program.find_state(std::string(name) + ".momentum");
    ASSERT_TRUE(momentum.valid()) << name;
    EXPECT_EQ(program.state(momentum).role, Role::optimizer);
    EXPECT_EQ(program.state(momentum).owner, program.find_state(name));
    EXPECT_EQ(program.state(momentum).purpose, "momentum");
    EXPECT_EQ(program.state(momentum).type, program.state(program.find_state(name)).type);
  }
  EXPECT_TRUE(contains(print(program), "state a.bias.momentum : f32[4] optimizer momentum of a.bias\n"));
  EXPECT_TRUE(contains(nodes_of(program, SectionKind::update, Phase::update),
                       "a.bias@1, a.bias.grad@1, a.bias.momentum@1 = sgd(a.bias@0, a.bias.grad@0, scalars@0, a.bias.momentum@0) "
                       "{momentum=0.9, nesterov=1, weight_decay=0.0}"));
  EXPECT_TRUE(
      contains(nodes_of(program, SectionKind::init, Phase::init), "a.bias.momentum@1 = fill(a.bias.momentum@0) {value=0.0}"));
}

TEST(AddUpdate, AGroupsSettingsAreThoseOfTheParametersItNames) {
  const Program program = add_update(differentiate(two_layers()),
                                     {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0.1, .nesterov = false}),
                                      .groups = {{.pattern = "*.bias", .settings = {{"weight_decay", 0.0}}},
                                                 {.pattern = "a.*", .settings = {{"weight_decay", 0.5}}}}});
  std::string decays;
  for (const Node& node : program.find_section(SectionKind::update)->nodes)
    decays += fmt::format("{} {} ", node.layer, node.attributes.real("weight_decay"));
  EXPECT_EQ(decays, "a.weight 0.5 a.bias 0 head.weight 0.1 ");
}

TEST(AddUpdate, WhatHasSixteenBitsIsRoundedStochasticallyWithAKeyOfItsOwn) {
  GraphBuilder b("narrow", 2);
  b.softmax_cross_entropy(b.linear("head", b.features({3}), 5));
  const Program model = std::move(b).finish();
  const auto keys = [&](DType precision, const ops::UpdateOptions& options) {
    const Program program = add_update(differentiate(narrow(model, precision)), options);
    std::string text;
    for (const Node& node : program.find_section(SectionKind::update)->nodes) {
      if (node.op->update == nullptr) continue;
      text += fmt::format("{} {} ", node.op->name,
                          node.attributes.integer_or("stochastic", 0) == 0
                              ? "nearest"
                              : program.states[static_cast<std::size_t>(node.attributes.integer("key"))].name);
    }
    return text;
  };
  EXPECT_EQ(keys(DType::bf16, {.stochastic_rounding = true}), "sgd head.weight sgd head.bias ");
  EXPECT_EQ(keys(DType::bf16, {.rule = "adamw"}), "adamw_scaled nearest adamw_scaled nearest ");
  EXPECT_EQ(keys(DType::bf16, {.rule = "adamw", .stochastic_rounding = true}),
            "adamw_scaled head.weight adamw_scaled head.bias ");
  EXPECT_EQ(keys(DType::f32, {.rule = "adamw", .stochastic_rounding = true}), "adamw nearest adamw nearest ");
}

TEST(AddUpdate, MomentsAreStoredAsToldOrAsSuitsTheParameter) {
  GraphBuilder b("wide", 2);
  b.softmax_cross_entropy(b.linear("head", b.features({4096}), 5));
  const Program model = std::move(b).finish();
  const auto types = [&](DType precision, std::int64_t bits) {
    const Program program =
        add_update(differentiate(narrow(model, precision)), {.rule = "adamw", .settings = {{"moment_bits", bits}}});
    verify(program, "in a test");
    std::string text;
    for (const State& state : program.states) {
      if (state.purpose == "second_moment" || state.purpose == "moment_scales")
        text += fmt::format("{} {} ", state.name, to_string(state.type));
    }
    return text;
  };
  const std::string floats = "head.weight.second_moment f32[5x4096] head.bias.second_moment f32[5] ";
  const std::string halves =
      "head.weight.second_moment f16[5x4096] head.weight.moment_scales f32[2] "
      "head.bias.second_moment f16[5] head.bias.moment_scales f32[2] ";
  EXPECT_EQ(types(DType::f32, 0), floats);
  EXPECT_EQ(types(DType::f32, 32), floats);
  EXPECT_EQ(types(DType::f32, 16),
            "head.weight.second_moment f16[5x4096] head.weight.moment_scales f32[2] head.bias.second_moment f32[5] ");
  for (const DType precision : {DType::bf16, DType::f16}) {
    EXPECT_EQ(types(precision, 0), halves);
    EXPECT_EQ(types(precision, 16), halves);
    EXPECT_EQ(types(precision, 32), floats);
  }
  for (const DType precision : {DType::f32, DType::bf16, DType::f16}) {
    EXPECT_EQ(types(precision, 8), "head.weight.moment_scales f32[80x2] head.bias.second_moment f32[5] ");
  }
  EXPECT_THROW(types(DType::f32, 4), UserError);
}

TEST(AddUpdate, AdamwDecaysWhatHasMoreThanOneDimension) {
  const auto decays = [](const Attributes& settings) {
    const Program program = add_update(differentiate(two_layers()), {.rule = "adamw", .settings = settings});
    std::string text;
    for (const Node& node : program.find_section(SectionKind::update)->nodes) {
      if (node.op->update != nullptr) text += fmt::format("{} {} ", node.layer, node.attributes.real("weight_decay"));
    }
    return text;
  };
  EXPECT_EQ(decays({{"weight_decay", 0.1}}), "a.weight 0.1 a.bias 0 head.weight 0.1 ");
  EXPECT_EQ(decays({{"weight_decay", 0.1}, {"decay_norms", std::int64_t{1}}}), "a.weight 0.1 a.bias 0.1 head.weight 0.1 ");
}

TEST(AddUpdate, PatternsMatchWholeNames) {
  const auto matching = [](const char* pattern, const char* name) { return ops::matches({.pattern = pattern}, name); };
  EXPECT_TRUE(matching("*", ""));
  EXPECT_TRUE(matching("*.bias", "a.bias"));
  EXPECT_FALSE(matching("*.bias", "a.bias.momentum"));
  EXPECT_TRUE(matching("layer*.conv*.weight", "layer1.0.conv2.weight"));
  EXPECT_FALSE(matching("layer", "layer1"));
}

TEST(AddUpdate, ARuleThatCountsUpdatesHasTheCountBeforeTheFirst) {
  const Program program = add_update(differentiate(two_layers()), {.rule = "adamw", .clip_norm = 1});
  verify(program, "in a test");
  EXPECT_EQ(ops_of(program, SectionKind::update, Phase::update),
            "sum_of_squares sum_of_squares sum_of_squares clip_factor count_update adamw adamw adamw ");
  EXPECT_TRUE(contains(nodes_of(program, SectionKind::update, Phase::update),
                       "a.bias@1, a.bias.grad@1, a.bias.first_moment@1, a.bias.second_moment@1 = adamw(a.bias@0, a.bias.grad@0, "
                       "scalars@0, a.bias.first_moment@0, a.bias.second_moment@0, updates@1, gradient_norm@1)"));
  EXPECT_EQ(print(parse_program(print(program), ops::find)), print(program));
}

TEST(AddUpdate, UnknownRulesAndSettingsAreRefused) {
  EXPECT_THROW(add_update(differentiate(two_layers()), {.rule = "adagrad"}), UserError);
  EXPECT_THROW(add_update(differentiate(two_layers()), {.settings = {{"beta1", 0.9}}}), UserError);
  EXPECT_THROW(add_update(differentiate(two_layers()), {.groups = {{.pattern = "*", .settings = {{"weigth_decay", 0.0}}}}}),
               UserError);
  EXPECT_THROW(add_update(differentiate(two_layers()), {.rule = "adamw", .settings = {{"beta1", 1.0}}}), UserError);
  EXPECT_THROW(add_update(differentiate(two_layers()), {.rule = "adamw", .settings = {{"momentum", 0.9}}}), UserError);
}

TEST(AddUpdate, MeasuresAllGradientsBeforeTheFirstUpdate) {
  const Program program =
      add_update(differentiate(two_layers()),
                 {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false}), .clip_norm = 2});
  EXPECT_EQ(nodes_of(program, SectionKind::update, Phase::update),
            "%a.weight.squares = sum_of_squares(a.weight.grad@0) : f64[1] scalar ; update a.weight\n"
            "%a.bias.squares = sum_of_squares(a.bias.grad@0, %a.weight.squares) : f64[1] scalar ; update a.bias\n"
            "%head.weight.squares = sum_of_squares(head.weight.grad@0, %a.bias.squares) : f64[1] scalar ; update head.weight\n"
            "gradient_norm@1 = clip_factor(%head.weight.squares, scalars@0) : state ; update gradient_norm\n"
            "a.weight@1, a.weight.grad@1 = sgd(a.weight@0, a.weight.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update a.weight\n"
            "a.bias@1, a.bias.grad@1 = sgd(a.bias@0, a.bias.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update a.bias\n"
            "head.weight@1, head.weight.grad@1 = sgd(head.weight@0, head.weight.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update head.weight\n");
  EXPECT_EQ(to_string(program.state(program.find_state("gradient_norm")).type), "f64[2]");
}

TEST(AddUpdate, OverflowsAreFoundByTheSameNodes) {
  const auto text = [](const ops::UpdateOptions& update) { return print(add_update(differentiate(two_layers()), update)); };
  std::string found = text({.finds_overflow = true});
  const std::string mark = " {finds_overflow=1}";
  ASSERT_TRUE(contains(found, mark));
  EXPECT_EQ(found, text({.clip_norm = 2, .finds_overflow = true}));
  EXPECT_EQ(found.erase(found.find(mark), mark.size()), text({.clip_norm = 2}));
}

TEST(AddUpdate, ReadsBackFromText) {
  const Program program = add_update(differentiate(two_layers()), {.clip_norm = 2});
  EXPECT_EQ(print(parse_program(print(program), ops::find)), print(program));
}

TEST(AddUpdate, TheNumberItselfIsNoPartOfTheProgram) {
  const auto text = [](double clip_norm) { return print(add_update(differentiate(two_layers()), {.clip_norm = clip_norm})); };
  EXPECT_EQ(text(2), text(0.5));
  EXPECT_EQ(text(2), text(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(contains(text(0), "gradient_norm"));
}

TEST(AddUpdate, FrozenParametersDoNotCount) {
  Program graph = two_layers();
  frontend::freeze(graph, {"a"});
  EXPECT_EQ(ops_of(add_update(differentiate(graph), {.clip_norm = 1}), SectionKind::update, Phase::update),
            "sum_of_squares clip_factor sgd ");
  frontend::freeze(graph, {"head"});
  const Program nothing = add_update(differentiate(graph), {.clip_norm = 1});
  EXPECT_TRUE(nothing.find_section(SectionKind::update)->nodes.empty());
  EXPECT_FALSE(nothing.find_state("gradient_norm").valid());
}

TEST(AddUpdate, FrozenParametersHaveNoUpdateAndNoState) {
  Program graph = two_layers();
  frontend::freeze(graph, {"a"});
  const Program program = add_update(differentiate(graph), {});
  EXPECT_EQ(ops_of(program, SectionKind::update, Phase::update), "sgd ");
  EXPECT_FALSE(program.find_state("a.weight.momentum").valid());
  EXPECT_TRUE(program.find_state("head.weight.momentum").valid());
}

TEST(AddUpdate, ASharedParameterHasOneUpdate) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    const ValueId w = b.parameter("w", {.dtype = DType::f32, .shape = {3, 3}}, {});
    for (const char* name : {"first", "second"}) x = b.emit(name, ops::linear, {x, w}).front();
    return x;
  });
  EXPECT_TRUE(contains(nodes_of(add_update(differentiate(graph), {}), SectionKind::update, Phase::update),
                       "w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, "));
}

TEST(AddUpdate, ImpossibleNormsAreRefused) {
  EXPECT_THROW(add_update(differentiate(two_layers()), {.clip_norm = -1}), UserError);
  EXPECT_THROW(add_update(differentiate(two_layers()), {.clip_norm = std::numeric_limits<double>::quiet_NaN()}), UserError);
}

}  // namespace
}  // namespace snug::testing
