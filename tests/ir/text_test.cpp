#include "ir/text.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/builder.h"
#include "test_ops.h"

namespace snug::testing {
namespace {

// What printing gives for the text: the text itself when it is in printed form.
std::string again(const std::string& text) { return print(parse(text)); }

constexpr const char* kEverything =
    "program every-thing_1.0/x batch 100 microbatch 50\n"
    "state conv1.weight : f32[16x3x3x3]/channels_last parameter trainable\n"
    "state half : f16[16x144] parameter trainable\n"
    "state blocked : bf16[16x16x3x3]/opaque(ABcd16b16a,4608) optimizer host\n"
    "state images : u8[50x3x32x32] input\n"
    "state scalar : f64[] scalar\n"
    "state w : f32[4] parameter host trainable\n"
    "section init\n"
    "section micro\n"
    "  %a = make() {shape=[4]} : f32[4] activation ; forward layer/1\n"
    "  %b = copy(%a) {all=[], integers=[1,-2,9223372036854775807], real=0.1, reals=[1.0,-2.5e-07,3e+300], zero=0} : f32[4] "
    "activation in %a using "
    "plain_copy ; forward\n"
    "  %c = plain(%b) : f32[4]/channels_last activation_gradient host ; recompute x\n"
    "  %d.first, %d.second = pair(%b) : f32[4] workspace, f32[4] statistic using k workspace %d.workspace u8[4096] ; backward d\n"
    "section update\n"
    "  %g = copy(w@0) : f32[4] gradient ; update\n"
    "  w@1, %rest = step(w@0, %g) : state, f32[4] gradient in %g ; update w\n"
    "section periodic\n"
    "section eval\n";

TEST(Text, PrintingParsingAndPrintingIsTheIdentity) { EXPECT_EQ(again(kEverything), kEverything); }

TEST(Text, ParsedProgramHasWhatTheTextSays) {
  const Program program = parse(kEverything);
  EXPECT_EQ(program.name, "every-thing_1.0/x");
  EXPECT_EQ(program.batch, 100);
  EXPECT_EQ(program.microbatch, 50);
  const State& blocked = program.state(program.find_state("blocked"));
  EXPECT_EQ(blocked.space, MemorySpace::host);
  EXPECT_EQ(blocked.role, Role::optimizer);
  EXPECT_FALSE(blocked.trainable);
  EXPECT_EQ(blocked.type.bytes(), Bytes(4608));
  EXPECT_FALSE(program.find_state("nobody").valid());

  const Section& micro = *program.find_section(SectionKind::micro);
  const Node& copy = micro.nodes[1];
  EXPECT_EQ(copy.kernel, "plain_copy");
  EXPECT_EQ(micro.value(copy.outputs[0]).shares, copy.inputs[0]);
  EXPECT_EQ(copy.attributes.real("real"), 0.1);
  EXPECT_EQ(copy.attributes.reals("reals"), (std::vector<double>{1, -2.5e-7, 3e300}));
  EXPECT_EQ(micro.nodes[2].phase, Phase::recompute);
  EXPECT_EQ(micro.nodes[2].layer, "x");
  EXPECT_EQ(micro.value(micro.nodes[2].outputs[0]).space, MemorySpace::host);
  const Node& pair = micro.nodes[3];
  EXPECT_EQ(micro.value(pair.workspace).role, Role::workspace);
  EXPECT_EQ(micro.value(pair.workspace).type.bytes(), Bytes(4096));

  const Section& update = *program.find_section(SectionKind::update);
  const Value& w1 = update.value(update.nodes[1].outputs[0]);
  EXPECT_EQ(w1.state, program.find_state("w"));
  EXPECT_EQ(w1.version, 1);
}

TEST(Text, SpacesAndEmptyLinesDoNotMatter) {
  EXPECT_EQ(
      again("\n program  t  batch 1  microbatch 1\n\nsection micro\n\n%a=make( ){ shape=[ 2, 3 ] }:f32[2x3]activation;forward"),
      "program t batch 1 microbatch 1\n"
      "section micro\n"
      "  %a = make() {shape=[2,3]} : f32[2x3] activation ; forward\n");
}

TEST(Text, NumbersReadBackAsTheSameBits) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  for (const double value :
       {0.1, 1.0, -0.0, 1e-5, 1.0 / 3.0, 1e22, 123456789.0, 1e300, kLeast, std::numeric_limits<double>::max()}) {
    Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
    const std::vector<State> states;
    SectionBuilder(states, section).emit(*find_test_op("make"), {}, {{"shape", std::vector<std::int64_t>{1}}, {"x", value}}, {});
    const Program program{.name = "t", .batch = 1, .microbatch = 1, .states = {}, .sections = {section}};
    const double read = parse(print(program)).sections[0].nodes[0].attributes.real("x");
    EXPECT_EQ(read, value);
    EXPECT_EQ(std::signbit(read), std::signbit(value));
  }
}

// The words of the language are no reserved names.
TEST(Text, StatesMayBeCalledLikeKeywords) {
  const std::string text =
      "program program batch 1 microbatch 1\n"
      "state state : f32[4] parameter\n"
      "state section : f32[4] gradient\n"
      "section micro\n"
      "  state@1, section@1 = step(state@0, section@0) : state, state ; update host\n"
      "  section@2 = copy(section@1) : state ; update in\n";
  EXPECT_EQ(again(text), text);
}

TEST(Text, OneNodeAndOneSectionPrintAsInTheProgram) {
  const Program program = parse(kEverything);
  const Section& micro = *program.find_section(SectionKind::micro);
  EXPECT_EQ(print(micro, micro.nodes[0]), "%a = make() {shape=[4]} : f32[4] activation ; forward layer/1");
  EXPECT_EQ(print(*program.find_section(SectionKind::periodic)), "section periodic\n");
}

TEST(ValueLives, RunFromTheMakerToTheLastReader) {
  const Program program =
      parse(with_states("%a = make() {shape=[4]} : f32[4] activation ; forward\n"
                        "%b = plain(%a) : f32[4] activation ; forward\n"
                        "%c = sum(%a, w@0) : f32[4] activation using k workspace %s u8[8] ; forward\n"));
  const Section& section = program.sections[0];
  const std::vector<ValueLife> lives = value_lives(section);
  const auto life = [&](const std::string& name) {
    for (std::size_t i = 0; i < section.values.size(); ++i) {
      if (section.values[i].name == name) return lives[i];
    }
    return ValueLife{};
  };
  EXPECT_EQ(life("a").producer, NodeId(0));
  EXPECT_EQ(life("a").last_use, NodeId(2));
  EXPECT_EQ(life("b").last_use, NodeId(1));  // nothing reads it: it lives while its node runs
  EXPECT_FALSE(life("w").producer.valid());
  EXPECT_EQ(life("w").last_use, NodeId(2));
  EXPECT_EQ(life("s").producer, NodeId(2));
}

}  // namespace
}  // namespace snug::testing
