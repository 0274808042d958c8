// Each rule of verify.h broken once on purpose.
#include "ir/verify.h"

#include <string>

#include <gtest/gtest.h>

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
    EXPECT_TRUE(std::string(error.what()).starts_with("the program 'test' is broken after pass melt: section micro: output 0"));
  }
}

TEST(Verify, MicrobatchMustBePartOfTheBatch) {
  Program program = parse(with_states(""));
  program.microbatch = 5;
  EXPECT_EQ(defect_of(program), "a microbatch of 5 out of a batch of 4 is not possible");
  program.microbatch = 0;
  EXPECT_EQ(defect_of(program), "a microbatch of 0 out of a batch of 4 is not possible");
}

TEST(Verify, StatesAndSectionsAreThereOnce) {
  Program program = parse(with_states(""));
  program.sections.push_back({.kind = SectionKind::micro, .values = {}, .nodes = {}});
  EXPECT_EQ(defect_of(program), "there are two sections 'micro'");
  program.states[1].name = "w";
  EXPECT_EQ(defect_of(program), "two states are called 'w'");
}

TEST(Verify, ValuesAreMadeBeforeTheyAreRead) {
  Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation ; forward\n"));
  std::swap(program.sections[0].nodes[0], program.sections[0].nodes[1]);
  EXPECT_EQ(defect_of(program), "section micro: %a is read before it is made");
}

TEST(Verify, ValuesAreMadeOnce) {
  Program program = parse(with_states(kMakeA + "%b = make() {shape=[4]} : f32[4] activation ; forward\n"));
  Section& section = program.sections[0];
  section.nodes[1].outputs = section.nodes[0].outputs;
  EXPECT_EQ(defect_of(program), "section micro: 'a' is made twice");
}

TEST(Verify, NamesAreUnique) {
  Program program = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation using k workspace %s u8[8] ; forward\n"));
  program.sections[0].value(program.sections[0].nodes[1].workspace).name = "b";
  EXPECT_EQ(defect_of(program), "section micro: two values are called %b");
  program.sections[0].value(program.sections[0].nodes[1].outputs[0]).name = "a";
  EXPECT_EQ(defect_of(program), "section micro: two values are called %a");
}

TEST(Verify, TypesFollowFromTheOp) {
  EXPECT_EQ(defect("%a = make() {shape=[4]} : f16[4] activation ; forward\n"),
            "section micro: output 0 is f16[4] but the op makes f32[4]");
  EXPECT_EQ(defect(kMakeA + "%b = sum(%a) : f32[4] activation ; forward\n"), "section micro: sum: got 1 inputs; it takes 2");
  EXPECT_EQ(defect(kMakeA + "%b = pair(%a) : f32[4] activation ; forward\n"),
            "section micro: the op makes 2 outputs, the node has 1");
  EXPECT_EQ(defect("%a = make() : f32[4] activation ; forward\n"), "section micro: make: attribute 'shape' is missing");
}

TEST(Verify, LayoutIsForPassesToChoose) {
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a) : f32[4]/channels_last activation ; forward\n"), "");
}

TEST(Verify, AccumulatorMustBeOfTheResultsType) {
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a, w@0) {accumulate=1} : f32[4] gradient ; backward\n"), "");
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a, big@0) {accumulate=1} : f32[4] gradient ; backward\n"),
            "section micro: plain: the value to add to is f32[8] but the result is f32[4]");
  EXPECT_EQ(defect(kMakeA + "%b = copy(%a, w@0) {accumulate=1} : f32[4] gradient ; backward\n"),
            "section micro: copy: this op cannot add to a value; remove the attribute 'accumulate'");
  EXPECT_EQ(defect("%b = plain() {accumulate=1} : f32[4] gradient ; backward\n"),
            "section micro: plain: the value to add to is missing");
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a) {accumulate=1.5} : f32[4] gradient ; backward\n"),
            "section micro: plain: attribute 'accumulate' is not a whole number");
}

TEST(Verify, StateVersionsComeInOrder) {
  EXPECT_EQ(defect("%a = copy(w@1) : f32[4] activation ; forward\n"),
            "section micro: w@1 is read when the state is at version 0");
  EXPECT_EQ(defect("w@2 = copy(w@0) : state ; update\n"), "section micro: w@2 is written when the state is at version 0");
  EXPECT_EQ(defect("w@0 = copy(g@0) : state ; update\n"), "section micro: w@0 is written when the state is at version 0");
}

TEST(Verify, AnOldVersionIsNotReadAfterTheUpdate) {
  EXPECT_EQ(defect("w@1 = copy(w@0) : state ; update\n%a = plain(w@0) : f32[4] activation ; recompute\n"),
            "section micro: w@0 is read when the state is at version 1");
}

TEST(Verify, AStateIsWrittenInPlaceOnlyByPromise) {
  EXPECT_EQ(defect("w@1 = plain(w@0) : state ; update\n"),
            "section micro: the op reads 'w' while it writes it, and has not promised to work in place");
  // `step` promises to make each output in its own input, not in the other's.
  EXPECT_EQ(defect("g@1, w@1 = step(w@0, g@0) : state, state ; update\n"),
            "section micro: the op reads 'g' while it writes it, and has not promised to work in place");
  EXPECT_EQ(defect(kMakeA + "w@1 = plain(%a, w@0) {accumulate=1} : state ; update\n"), "");
}

TEST(Verify, AStateKeepsItsType) {
  Program program = parse(with_states("w@1 = copy(w@0) : state ; update\n"));
  program.states[0].type.layout = Layout::channels_last();
  EXPECT_EQ(defect_of(program), "section micro: 'w' is not of its state's type");
  program.sections[0].value(program.sections[0].nodes[0].inputs[0]).type = program.states[0].type;
  EXPECT_EQ(defect_of(program), "section micro: 'w' is not of its state's type");  // the version that is written
}

TEST(Verify, TwoOutputsOfANodeDoNotLieInTheSameBytes) {
  EXPECT_EQ(defect(kMakeA + "%b, %c = pair(%a) : f32[4] activation in %a, f32[4] activation ; forward\n"), "");
  EXPECT_EQ(defect(kMakeA + "%b, %c = pair(%a) : f32[4] activation in %a, f32[4] activation in %a ; forward\n"),
            "section micro: %c lies in the bytes of another output of its node");
  EXPECT_EQ(defect(kMakeA + "w@1, w@2 = pair(%a) : state, state ; update\n"), "section micro: 'w' is written twice by one node");
}

TEST(Verify, BytesAreTakenOnlyFromAnInputOfTheSameNode) {
  EXPECT_EQ(defect(kMakeA + "%b = copy(%a) : f32[4] activation ; forward\n%c = copy(%b) : f32[4] activation in %a ; forward\n"),
            "section micro: %c takes the bytes of a value that is not an input of its node");
}

TEST(Verify, BytesOfAStateAreNeverTaken) {
  EXPECT_EQ(defect("%b = copy(w@0) : f32[4] activation in w@0 ; forward\n"),
            "section micro: %b takes the bytes of the state 'w'");
  Program program = parse(with_states(kMakeA + "w@1 = copy(%a) : state ; update\n"));
  Section& section = program.sections[0];
  section.value(section.nodes[1].outputs[0]).shares = section.nodes[1].inputs[0];
  EXPECT_EQ(defect_of(program), "section micro: 'w' is a state and cannot take other bytes");
}

TEST(Verify, BytesAreTakenOnlyByPromise) {
  EXPECT_EQ(defect(kMakeA + "%b = plain(%a) : f32[4] activation in %a ; forward\n"),
            "section micro: plain has not promised to make output 0 in input 0");
  EXPECT_EQ(defect(kMakeA + "%b = make() {shape=[4]} : f32[4] activation ; forward\n"
                            "%c, %d = step(%a, %b) : f32[4] activation in %b, f32[4] activation ; forward\n"),
            "section micro: step has not promised to make output 0 in input 1");
}

TEST(Verify, BytesAreTakenOnlyInTheSameSpaceAndLayout) {
  EXPECT_EQ(defect(kMakeA + "%b = cross(%a) {host=0} : f32[4] activation in %a ; forward\n"), "");
  EXPECT_EQ(defect(kMakeA + "%b = cross(%a) {host=1} : f32[4] activation host in %a ; forward\n"),
            "section micro: %b and %a are in different memory spaces");
  EXPECT_EQ(defect("%a = make() {shape=[2,3,4]} : f32[2x3x4] activation ; forward\n"
                   "%b = copy(%a) : f32[2x3x4]/channels_last activation in %a ; forward\n"),
            "section micro: %b takes the bytes of %a in another layout");
}

TEST(Verify, ALargerValueDoesNotFitTheBytesItTakes) {
  EXPECT_EQ(defect("%a = make() {shape=[4]} : f32[4] activation ; forward\n"
                   "%b = view(%a) {shape=[8]} : f32[8] activation in %a ; forward\n"),
            "section micro: %b is larger than %a whose bytes it takes");
}

TEST(Verify, WhatIsReadLaterIsNotOverwritten) {
  EXPECT_EQ(defect(kMakeA + "%b = copy(%a) : f32[4] activation in %a ; forward\n%c = copy(%a) : f32[4] activation ; forward\n"),
            "section micro: %a is overwritten but read later");
}

TEST(Verify, AViewIsNotOverwrittenWhileItIsRead) {
  EXPECT_EQ(defect(kMakeA + "%v = view(%a) {shape=[2,2]} : f32[2x2] activation in %a ; forward\n"
                            "%b = copy(%a) : f32[4] activation in %a ; forward\n"
                            "%c = copy(%v) : f32[2x2] activation ; forward\n"),
            "section micro: %v is overwritten but read later");
  // Nor the value it is a view of, through the view.
  EXPECT_EQ(defect(kMakeA + "%v = view(%a) {shape=[2,2]} : f32[2x2] activation in %a ; forward\n"
                            "%b = copy(%v) : f32[2x2] activation in %v ; forward\n"
                            "%c = copy(%a) : f32[4] activation ; forward\n"),
            "section micro: %a is overwritten but read later");
}

TEST(Verify, TheNodeItselfDoesNotReadTheBytesItOverwritesThroughAnotherOperand) {
  EXPECT_EQ(defect(kMakeA + "%v = view(%a) {shape=[4]} : f32[4] activation in %a ; forward\n"
                            "%b, %c = step(%a, %v) : f32[4] activation in %a, f32[4] activation ; forward\n"),
            "section micro: %v lies in the bytes that the node overwrites");
  // `sum` promises to read both in step.
  EXPECT_EQ(defect(kMakeA + "%b = sum(%a, %a) : f32[4] activation in %a ; forward\n"), "");
}

TEST(Verify, AWorkspaceBelongsToOneNodeAlone) {
  const std::string node = "%b = copy(%a) : f32[4] activation using k workspace %s u8[64] ; forward\n";
  EXPECT_EQ(defect(kMakeA + node + "%c = copy(%s) : u8[64] activation ; forward\n"),
            "section micro: %s is not a workspace of this node alone");
  Program program = parse(with_states(kMakeA + node));
  Section& section = program.sections[0];
  section.nodes[1].workspace = section.nodes[0].outputs[0];
  EXPECT_EQ(defect_of(program), "section micro: %a is not a workspace of this node alone");
}

TEST(Verify, IdsThatDoNotExistAreReportedNotFollowed) {
  const Program sound = parse(with_states(kMakeA + "%b = copy(%a) : f32[4] activation in %a ; forward\n"));
  const ValueId nowhere(1000);
  const auto broken = [&](auto change) {
    Program program = sound;
    change(program.sections[0], program.sections[0].nodes[1]);
    return find_defect(program).value_or("");
  };
  EXPECT_EQ(broken([&](Section&, Node& node) { node.inputs[0] = nowhere; }),
            "section micro: an input does not exist\n  in: a copy node with operands that do not exist");
  EXPECT_EQ(broken([&](Section&, Node& node) { node.outputs[0] = ValueId::none(); }),
            "section micro: an output does not exist\n  in: a copy node with operands that do not exist");
  EXPECT_EQ(broken([&](Section&, Node& node) { node.workspace = nowhere; }),
            "section micro: the workspace does not exist\n  in: a copy node with operands that do not exist");
  EXPECT_EQ(
      broken([&](Section& section, Node& node) { section.value(node.outputs[0]).shares = nowhere; }),
      "section micro: %b takes the bytes of a value that is not an input of its node\n  in: a copy node with operands that do "
      "not exist");
  EXPECT_EQ(broken([&](Section&, Node& node) { node.op = nullptr; }),
            "section micro: the node has no op\n  in: a node without op");
  EXPECT_EQ(broken([&](Section& section, Node& node) { section.value(node.outputs[0]).state = StateId(1000); }),
            "section micro: 'b' is a state and cannot take other bytes\n  in: b@0 = copy(%a) : state ; forward");
  EXPECT_EQ(broken([&](Section& section, Node& node) { section.value(node.inputs[0]).state = StateId(1000); }),
            "section micro: 'a' is a version of a state that does not exist\n  in: a@0 = make() {shape=[4]} : state ; forward");
}

TEST(Verify, AnOpThatCrossesHasItsOutputsWhereItSays) {
  EXPECT_EQ(defect(kMakeA + "%h = cross(%a) {host=1} : f32[4] activation host ; forward\n"
                            "%i = cross(%h) {host=1} : f32[4] activation host ; forward\n"
                            "%b = cross(%h) {host=0} : f32[4] activation ; forward\n"),
            "");
  EXPECT_EQ(defect(kMakeA + "%h = cross(%a) {host=1} : f32[4] activation ; forward\n"),
            "section micro: 'h' lies in device memory, but the op writes host memory");
  EXPECT_EQ(defect(kMakeA + "%h = cross(%a) {host=0} : f32[4] activation host ; forward\n"),
            "section micro: 'h' lies in host memory, but the op writes device memory");
}

TEST(Verify, EveryOtherOpWorksOnTheDeviceAlone) {
  const std::string to_host = kMakeA + "%h = cross(%a) {host=1} : f32[4] activation host ; forward\n";
  EXPECT_EQ(defect(to_host + "%b = copy(%h) : f32[4] activation ; forward\n"),
            "section micro: 'h' lies in host memory, and copy works on the device alone; copy it there first");
  EXPECT_EQ(defect("%a = make() {shape=[4]} : f32[4] activation host ; forward\n"),
            "section micro: 'a' lies in host memory, and make works on the device alone; copy it there first");
  EXPECT_EQ(defect(to_host + "%v = view(%h) {shape=[2,2]} : f32[2x2] activation host in %h ; forward\n"),
            "section micro: 'h' lies in host memory, and view works on the device alone; copy it there first");
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
  EXPECT_EQ(defect_of(program), "section micro: %s is a workspace in host memory");
}

}  // namespace
}  // namespace snug::testing
