// Each rule of verify.h broken once on purpose.
#include "ir/verify.h"

#include <string>

#include <gtest/gtest.h>

#include "support/messages.h"
#include "test_ops.h"

namespace snug::testing {
namespace {

const std::string kMakeA = "%a = make() {shape=[4]} : f32[4] activation ; forward\n";

// The defect of a program of these nodes; "" when it is sound.
std::string defect(const std::string& nodes) { return defect_of(parse(with_states(nodes))); }

TEST(Verify, AcceptsASoundProgram) {
  EXPECT_EQ(defect(kMakeA + "%b = copy(%a) : f32[4] activation in %a using k workspace %s u8[64] ; forward\n"
                            "%v = view(%b) {shape=[2,2]} : f32[2x2] activation in %b ; forward\n"
                            "w@1, g@1 = step(w@0, g@0) : state, state ; update\n"
                            "w@2 = sum(w@1, %b) : state ; update\n"),
            "");
}

TEST(Verify, PrintsTheOffendingNode) {
  const Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[5] activation ; forward layer1\n"));
  EXPECT_EQ(
      find_defect(program),
      "section micro: output 0 is f32[5] but the op makes f32[4]\n  in: %b = copy(%a) : f32[5] activation ; forward layer1");
  try {
    verify(program, "after pass melt");
    FAIL() << "the defect was not reported";
  } catch (const InternalError& error) {
    EXPECT_TRUE(support::mentions(std::string(error.what()), {"'test'", "melt", "0"}));
  }
}

TEST(Verify, MicrobatchMustBePartOfTheBatch) {
  Program program = parse(with_states(""));
  program.microbatch = 5;
  EXPECT_TRUE(support::mentions(defect_of(program), {"microbatch", "5", "4"}));
  program.microbatch = 0;
  EXPECT_TRUE(support::mentions(defect_of(program), {"microbatch", "0", "4"}));
}

TEST(Verify, StatesAndSectionsAreThereOnce) {
  Program program = parse(with_states(""));
  program.sections.push_back({.kind = SectionKind::micro, .values = {}, .nodes = {}});
  EXPECT_TRUE(support::mentions(defect_of(program), {"sections", "'micro'"}));
  program.states[1].name = "w";
  EXPECT_TRUE(support::mentions(defect_of(program), {"states", "'w'"}));
}

TEST(Verify, ValuesAreMadeBeforeTheyAreRead) {
  Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation ; forward\n"));
  std::swap(program.sections[0].nodes[0], program.sections[0].nodes[1]);
  EXPECT_TRUE(support::mentions(defect_of(program), {"%a", "before"}));
}

TEST(Verify, ValuesAreMadeOnce) {
  Program program = parse(with_states(kMakeA + "%b = make() {shape=[4]} : f32[4] activation ; forward\n"));
  Section& section = program.sections[0];
  section.nodes[1].outputs = section.nodes[0].outputs;
  EXPECT_TRUE(support::mentions(defect_of(program), {"'a'", "twice"}));
}

TEST(Verify, NamesAreUnique) {
  Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation using k workspace %s u8[8] ; forward\n"));
  program.sections[0].value(program.sections[0].nodes[1].workspace).name = "b";
  EXPECT_TRUE(support::mentions(defect_of(program), {"called", "%b"}));
  program.sections[0].value(program.sections[0].nodes[1].outputs[0]).name = "a";
  EXPECT_TRUE(support::mentions(defect_of(program), {"called", "%a"}));
}

TEST(Verify, TypesFollowFromTheOp) {
  EXPECT_TRUE(
      support::mentions(defect("%a = make() {shape=[4]} : f16[4] activation ; forward\n"), {"0", "f16[4]", "makes", "f32[4]"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = sum(%a) : f32[4] activation ; forward\n"), {"sum", "got 1", "takes 2"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = pair(%a) : f32[4] activation ; forward\n"), {"makes 2", "has 1"}));
  EXPECT_TRUE(support::mentions(defect("%a = make() : f32[4] activation ; forward\n"), {"make", "'shape'", "missing"}));
}

TEST(Verify, LayoutIsForPassesToChoose) {
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a) : f32[4]/channels_last activation ; forward\n"), "");
}

TEST(Verify, AccumulatorMustBeOfTheResultsType) {
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a, w@0) {accumulate=1} : f32[4] gradient ; backward\n"), "");
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = plain(%a, big@0) {accumulate=1} : f32[4] gradient ; backward\n"),
                                {"plain", "f32[8]", "result", "f32[4]"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = copy(%a, w@0) {accumulate=1} : f32[4] gradient ; backward\n"),
                                {"copy", "cannot add", "'accumulate'"}));
  EXPECT_TRUE(
      support::mentions(defect("%b = plain() {accumulate=1} : f32[4] gradient ; backward\n"), {"plain", "add", "missing"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = plain(%a) {accumulate=1.5} : f32[4] gradient ; backward\n"),
                                {"plain", "'accumulate'", "whole"}));
}

TEST(Verify, StateVersionsComeInOrder) {
  EXPECT_TRUE(support::mentions(defect("%a = copy(w@1) : f32[4] activation ; forward\n"), {"w@1", "read", "version 0"}));
  EXPECT_TRUE(support::mentions(defect("w@2 = copy(w@0) : state ; update\n"), {"w@2", "written", "version 0"}));
  EXPECT_TRUE(support::mentions(defect("w@0 = copy(g@0) : state ; update\n"), {"w@0", "written", "version 0"}));
}

TEST(Verify, AnOldVersionIsNotReadAfterTheUpdate) {
  EXPECT_TRUE(support::mentions(defect("w@1 = copy(w@0) : state ; update\n%a = plain(w@0) : f32[4] activation ; recompute\n"),
                                {"w@0", "read", "version 1"}));
}

TEST(Verify, AStateIsWrittenInPlaceOnlyByPromise) {
  EXPECT_TRUE(support::mentions(defect("w@1 = plain(w@0) : state ; update\n"), {"'w'", "promised", "in place"}));
  // `step` promises to make each output in its own input, not in the other's.
  EXPECT_TRUE(support::mentions(defect("g@1, w@1 = step(w@0, g@0) : state, state ; update\n"), {"'g'", "promised", "in place"}));
  EXPECT_EQ(defect(kMakeA + "w@1 = plain(%a, w@0) {accumulate=1} : state ; update\n"), "");
}

TEST(Verify, AStateKeepsItsType) {
  Program program = parse(with_states("w@1 = copy(w@0) : state ; update\n"));
  program.states[0].type.layout = Layout::channels_last();
  EXPECT_TRUE(support::mentions(defect_of(program), {"'w'", "state's type"}));
  program.sections[0].value(program.sections[0].nodes[0].inputs[0]).type = program.states[0].type;
  EXPECT_TRUE(support::mentions(defect_of(program), {"'w'", "state's type"}));  // the version that is written
}

TEST(Verify, TwoOutputsOfANodeDoNotLieInTheSameBytes) {
  EXPECT_EQ(defect(kMakeA + "%b, %c = pair(%a) : f32[4] activation in %a, f32[4] activation ; forward\n"), "");
  EXPECT_TRUE(
      support::mentions(defect(kMakeA + "%b, %c = pair(%a) : f32[4] activation in %a, f32[4] activation in %a ; forward\n"),
                        {"%c", "another output"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "w@1, w@2 = pair(%a) : state, state ; update\n"), {"'w'", "written twice"}));
}

TEST(Verify, BytesAreTakenOnlyFromAnInputOfTheSameNode) {
  EXPECT_TRUE(support::mentions(
      defect(kMakeA + "%b = copy(%a) : f32[4] activation ; forward\n%c = copy(%b) : f32[4] activation in %a ; forward\n"),
      {"%c", "bytes", "not an input"}));
}

TEST(Verify, BytesOfAStateAreNeverTaken) {
  EXPECT_TRUE(support::mentions(defect("%b = copy(w@0) : f32[4] activation in w@0 ; forward\n"), {"%b", "the state", "'w'"}));
  Program program = parse(with_states(kMakeA + "w@1 = copy(%a) : state ; update\n"));
  Section& section = program.sections[0];
  section.value(section.nodes[1].outputs[0]).shares = section.nodes[1].inputs[0];
  EXPECT_TRUE(support::mentions(defect_of(program), {"'w'", "other bytes"}));
}

TEST(Verify, BytesAreTakenOnlyByPromise) {
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = plain(%a) : f32[4] activation in %a ; forward\n"),
                                {"plain", "promised", "output 0", "input 0"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = make() {shape=[4]} : f32[4] activation ; forward\n"
                                                "%c, %d = step(%a, %b) : f32[4] activation in %b, f32[4] activation ; forward\n"),
                                {"step", "promised", "output 0", "input 1"}));
}

TEST(Verify, BytesAreTakenOnlyInTheSameSpaceAndLayout) {
  EXPECT_EQ(defect(kMakeA + "%b = cross(%a) {host=0} : f32[4] activation in %a ; forward\n"), "");
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%b = cross(%a) {host=1} : f32[4] activation host in %a ; forward\n"),
                                {"%b", "%a", "different"}));
  EXPECT_TRUE(support::mentions(defect("%a = make() {shape=[2,3,4]} : f32[2x3x4] activation ; forward\n"
                                       "%b = copy(%a) : f32[2x3x4]/channels_last activation in %a ; forward\n"),
                                {"%b", "%a", "layout"}));
}

TEST(Verify, ALargerValueDoesNotFitTheBytesItTakes) {
  EXPECT_TRUE(support::mentions(defect("%a = make() {shape=[4]} : f32[4] activation ; forward\n"
                                       "%b = view(%a) {shape=[8]} : f32[8] activation in %a ; forward\n"),
                                {"%b", "larger", "%a"}));
}

TEST(Verify, WhatIsReadLaterIsNotOverwritten) {
  EXPECT_TRUE(support::mentions(
      defect(kMakeA + "%b = copy(%a) : f32[4] activation in %a ; forward\n%c = copy(%a) : f32[4] activation ; forward\n"),
      {"%a", "overwritten"}));
}

TEST(Verify, AViewIsNotOverwrittenWhileItIsRead) {
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%v = view(%a) {shape=[2,2]} : f32[2x2] activation in %a ; forward\n"
                                                "%b = copy(%a) : f32[4] activation in %a ; forward\n"
                                                "%c = copy(%v) : f32[2x2] activation ; forward\n"),
                                {"%v", "overwritten"}));
  // Nor the value it is a view of, through the view.
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%v = view(%a) {shape=[2,2]} : f32[2x2] activation in %a ; forward\n"
                                                "%b = copy(%v) : f32[2x2] activation in %v ; forward\n"
                                                "%c = copy(%a) : f32[4] activation ; forward\n"),
                                {"%a", "overwritten"}));
}

TEST(Verify, TheNodeItselfDoesNotReadTheBytesItOverwritesThroughAnotherOperand) {
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%v = view(%a) {shape=[4]} : f32[4] activation in %a ; forward\n"
                                                "%b, %c = step(%a, %v) : f32[4] activation in %a, f32[4] activation ; forward\n"),
                                {"%v", "overwrites"}));
  // `sum` promises to read both in step.
  EXPECT_EQ(defect(kMakeA + "%b = sum(%a, %a) : f32[4] activation in %a ; forward\n"), "");
}

TEST(Verify, AWorkspaceBelongsToOneNodeAlone) {
  const std::string node = "%b = copy(%a) : f32[4] activation using k workspace %s u8[64] ; forward\n";
  EXPECT_TRUE(support::mentions(defect(kMakeA + node + "%c = copy(%s) : u8[64] activation ; forward\n"),
                                {"micro", "%s", "workspace", "alone"}));
  Program program = parse(with_states(kMakeA + node));
  Section& section = program.sections[0];
  section.nodes[1].workspace = section.nodes[0].outputs[0];
  EXPECT_TRUE(support::mentions(defect_of(program), {"micro", "%a", "workspace", "alone"}));
}

TEST(Verify, IdsThatDoNotExistAreReportedNotFollowed) {
  const Program sound = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation in %a ; forward\n"));
  const ValueId nowhere(1000);
  const auto broken = [&](auto change) {
    Program program = sound;
    change(program.sections[0], program.sections[0].nodes[1]);
    return find_defect(program).value_or("");
  };
  EXPECT_TRUE(support::mentions(broken([&](Section&, Node& node) { node.inputs[0] = nowhere; }),
                                {"micro", "input", "not exist", "a copy node"}));
  EXPECT_TRUE(support::mentions(broken([&](Section&, Node& node) { node.outputs[0] = ValueId::none(); }),
                                {"micro", "output", "not exist", "a copy node"}));
  EXPECT_TRUE(support::mentions(broken([&](Section&, Node& node) { node.workspace = nowhere; }),
                                {"micro", "workspace", "not exist", "a copy node"}));
  EXPECT_TRUE(support::mentions(broken([&](Section& section, Node& node) { section.value(node.outputs[0]).shares = nowhere; }),
                                {"micro", "%b", "not an input", "a copy node"}));
  EXPECT_TRUE(support::mentions(broken([&](Section&, Node& node) { node.op = nullptr; }), {"micro", "no op"}));
  EXPECT_TRUE(
      support::mentions(broken([&](Section& section, Node& node) { section.value(node.outputs[0]).state = StateId(1000); }),
                        {"micro", "'b'", "other bytes", "b@0 = copy(%a)"}));
  EXPECT_TRUE(
      support::mentions(broken([&](Section& section, Node& node) { section.value(node.inputs[0]).state = StateId(1000); }),
                        {"micro", "'a'", "state", "not exist", "a@0 = make()"}));
}

TEST(Verify, AnOpThatCrossesHasItsOutputsWhereItSays) {
  EXPECT_EQ(defect(kMakeA + "%h = cross(%a) {host=1} : f32[4] activation host ; forward\n"
                            "%i = cross(%h) {host=1} : f32[4] activation host ; forward\n"
                            "%b = cross(%h) {host=0} : f32[4] activation ; forward\n"),
            "");
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%h = cross(%a) {host=1} : f32[4] activation ; forward\n"),
                                {"'h'", "in device", "writes host"}));
  EXPECT_TRUE(support::mentions(defect(kMakeA + "%h = cross(%a) {host=0} : f32[4] activation host ; forward\n"),
                                {"'h'", "in host", "writes device"}));
}

TEST(Verify, EveryOtherOpWorksOnTheDeviceAlone) {
  const std::string to_host = kMakeA + "%h = cross(%a) {host=1} : f32[4] activation host ; forward\n";
  EXPECT_TRUE(
      support::mentions(defect(to_host + "%b = copy(%h) : f32[4] activation ; forward\n"), {"'h'", "host memory", "copy works"}));
  EXPECT_TRUE(
      support::mentions(defect("%a = make() {shape=[4]} : f32[4] activation host ; forward\n"), {"'a'", "host memory", "make"}));
  EXPECT_TRUE(support::mentions(defect(to_host + "%v = view(%h) {shape=[2,2]} : f32[2x2] activation host in %h ; forward\n"),
                                {"'h'", "host memory", "view"}));
}

TEST(Verify, AStateHasOneMemoryInAllItsVersions) {
  const std::string text =
      "program test batch 4 microbatch 2\n"
      "state w : f32[4] parameter host\n"
      "section micro\n"
      "  w@1 = cross(w@0) {host=1} : state ; forward\n";
  EXPECT_EQ(defect_of(parse(text)), "");
  for (const std::size_t operand : {0U, 1U}) {
    Program program = parse(text);
    const Node& node = program.sections[0].nodes[0];
    program.sections[0].value(operand == 0 ? node.inputs[0] : node.outputs[0]).space = MemorySpace::device;
    EXPECT_NE(defect_of(program), "") << operand;
  }
}

TEST(Verify, AWorkspaceIsOnTheDevice) {
  Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation using k workspace %s u8[64] ; forward\n"));
  program.sections[0].value(program.sections[0].nodes[1].workspace).space = MemorySpace::host;
  EXPECT_TRUE(support::mentions(defect_of(program), {"micro", "%s", "workspace", "host"}));
}

}  // namespace
}  // namespace snug::testing
