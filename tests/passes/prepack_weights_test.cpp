#include "passes/prepack_weights.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

// Wants the weights of 3x3 data gradients in a layout of its own, and those of others as they are.
std::optional<Layout> own_layout(const KernelQuery& query) {
  if (query.op.name != "conv2d_grad_input" || query.inputs[1].shape[2] != 3) return std::nullopt;
  return Layout{.kind = Layout::Kind::opaque, .opaque_name = "packed", .opaque_bytes = query.inputs[1].bytes()};
}

std::string packed(const std::string& text) {
  AcceptingBackend backend;
  backend.preferred_weight_layout = own_layout;
  Program program = parse_program(text, ops::find);
  verify(program, "in the test's own text");
  program = prepack_weights(std::move(program), {.backend = backend});
  verify(program, "after the pass");
  return print(program);
}

const std::string kAttributes = "{dilation=[1,1], groups=1, input_shape=[2,4,8,8], padding=[1,1], stride=[1,1]}";
const std::string kResult = " : f32[2x4x8x8]/channels_last activation_gradient ; backward conv\n";

std::string program_with(const std::string& states, const std::string& micro, const std::string& rest) {
  return "program test batch 2 microbatch 2\n"
         "state scalars : u8[64] scalar\n"
         "state dy : f32[2x4x8x8]/channels_last input\n"
         "state w : f32[4x4x3x3] parameter trainable\n"
         "state w.grad : f32[4x4x3x3] gradient of w\n" +
         states + "section micro\n" + micro + rest;
}

const std::string kSgd =
    "w@1, w.grad@1 = sgd(w@0, w.grad@0, scalars@0) {momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update w\n";

TEST(PrepackWeights, TheDataGradientReadsACopyThatFollowsEveryWrite) {
  const std::string two_reads = "  %a = conv2d_grad_input(dy@0, w@0) " + kAttributes + kResult +
                                "  %b = conv2d_grad_input(%a, w@0) " + kAttributes + kResult;
  const std::string reading_copies = "  %a = conv2d_grad_input(dy@0, w.packed@0) " + kAttributes + kResult +
                                     "  %b = conv2d_grad_input(%a, w.packed@0) " + kAttributes + kResult;
  EXPECT_EQ(packed(program_with("", two_reads, "section update\n  " + kSgd)),
            program_with("state w.packed : f32[4x4x3x3]/opaque(packed,576) workspace\n", reading_copies,
                         "section update\n  " + kSgd +
                             "  w.packed@1 = relayout(w@1) {channels_last=0} : state ; update w\n"
                             "section derive\n"
                             "  w.packed@1 = relayout(w@0) {channels_last=0} : state ; update w\n"));
}

TEST(PrepackWeights, WhatMicroWritesItselfIsLeftAlone) {
  const std::string fused =
      program_with("", "  %a = conv2d_grad_input(dy@0, w@0) " + kAttributes + kResult + "  " + kSgd, "section update\n");
  EXPECT_EQ(packed(fused), fused);
}

TEST(PrepackWeights, AWeightThatLiesAsWantedIsLeftAlone) {
  const std::string attributes = "{dilation=[1,1], groups=1, input_shape=[2,4,8,8], padding=[0,0], stride=[1,1]}";
  const std::string pointwise =
      "program test batch 2 microbatch 2\n"
      "state dy : f32[2x4x8x8]/channels_last input\n"
      "state w : f32[4x4x1x1] parameter trainable\n"
      "section micro\n"
      "  %a = conv2d_grad_input(dy@0, w@0) " +
      attributes + kResult;
  EXPECT_EQ(packed(pointwise), pointwise);
}

TEST(PrepackWeights, RunsOnlyWhenItIsAskedFor) {
  AcceptingBackend backend;
  backend.preferred_weight_layout = own_layout;
  const std::string text = program_with("",
                                        "  %a = conv2d_grad_input(dy@0, w@0) " + kAttributes + kResult +
                                            "  w.grad@1 = add(w.grad@0, w.grad@0) : state ; backward w\n",
                                        "section update\n");
  const auto has_copies = [&](const PassOptions& options, bool prepacks) {
    std::vector<PassTiming> timings;
    const Program program = run_passes(parse_program(text, ops::find), memory_passes(),
                                       {.backend = backend, .methods = {.prepack_weights = prepacks}}, options, timings);
    return program.find_section(SectionKind::derive) != nullptr;
  };
  EXPECT_FALSE(has_copies({.disabled = {"eliminate_dead_nodes"}}, false));
  EXPECT_TRUE(has_copies({.disabled = {"eliminate_dead_nodes"}}, true));
  EXPECT_FALSE(has_copies({.disabled = {"eliminate_dead_nodes", "prepack_weights"}}, true));
  EXPECT_THROW(check_passes(pipeline(), {.disabled = {"prepack_weights"}}, {.prepack_weights = true}), UserError);
  EXPECT_THROW(check_passes(pipeline(), {.disabled = {"no_such_pass"}}, {}), UserError);
}

}  // namespace
}  // namespace snug::testing
