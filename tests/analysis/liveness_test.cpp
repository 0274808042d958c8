#include "analysis/liveness.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace snug {
namespace {

Program program_of(const std::string& nodes) {
  Program program = parse_program(
      "program test batch 2 microbatch 2\n"
      "state x : f32[2x4] input\n"
      "state w : f32[4x4] parameter\n"
      "state b : f32[4] parameter\n"
      "section micro\n" +
          nodes,
      ops::find);
  verify(program, "in the test's own text");
  return program;
}

// One line a buffer: its tenants with the node that makes each, its bytes, and its half-open lifetime.
std::string lives(const std::string& nodes) {
  const Program program = program_of(nodes);
  std::string text;
  for (const Buffer& buffer : liveness(program.sections[0]).buffers) {
    for (const Tenant& tenant : buffer.tenants)
      text += fmt::format("{}:{} ", program.sections[0].value(tenant.value).name, tenant.from);
    text += fmt::format("{}B [{},{})\n", buffer.size.count(), buffer.begin, buffer.end);
  }
  return text;
}

const std::string kA = "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n";

TEST(Liveness, AValueLivesFromItsMakerThroughItsLastReader) {
  EXPECT_EQ(lives(kA + "%b = relu(%a) : f32[2x4] activation ; forward b\n"
                       "%c = add(%a, %b) : f32[2x4] activation ; forward c\n"
                       "b@1 = sum_to_channels(%b) : state ; update\n"),
            "a:0 32B [0,3)\n"
            "b:1 32B [1,4)\n"
            "c:2 32B [2,3)\n");  // nothing reads it, but its node writes it
}

TEST(Liveness, StatesAreNoBuffers) { EXPECT_EQ(lives("b@1 = fill(b@0) {value=0.0} : state ; init\n"), ""); }

TEST(Liveness, ValuesThatShareBytesAreOneBuffer) {
  EXPECT_EQ(lives(kA + "%b = relu(%a) : f32[2x4] activation in %a ; forward b\n"
                       "%c = relu(%b) : f32[2x4] activation in %b ; forward c\n"
                       "%d = relu(%c) : f32[2x4] activation ; forward d\n"),
            "a:0 b:1 c:2 32B [0,4)\n"
            "d:3 32B [3,4)\n");
}

TEST(Liveness, AViewKeepsTheBytesItLiesIn) {
  EXPECT_EQ(lives(kA + "%v = reshape(%a) {shape=[8]} : f32[8] activation in %a ; forward v\n"
                       "%c = linear(x@0, w@0) : f32[2x4] activation ; forward c\n"
                       "%u = relu(%v) : f32[8] activation ; forward u\n"),
            "a:0 v:1 32B [0,4)\n"
            "c:2 32B [2,3)\n"
            "u:3 32B [3,4)\n");
}

TEST(Liveness, AWorkspaceLivesWhileItsNodeRuns) {
  EXPECT_EQ(lives("%a = linear(x@0, w@0) : f32[2x4] activation using k workspace %s u8[100] ; forward a\n"
                  "%b = relu(%a) : f32[2x4] activation ; forward b\n"),
            "a:0 32B [0,2)\n"
            "s:0 100B [0,1)\n"
            "b:1 32B [1,2)\n");
}

TEST(Liveness, ValuesThatNothingMakesHaveNoBuffer) {
  Program program = program_of(kA + "%b = relu(%a) : f32[2x4] activation ; forward b\n");
  Section& section = program.sections[0];
  const ValueId b = section.nodes[1].outputs[0];
  section.nodes.pop_back();
  const Liveness live = liveness(section);
  EXPECT_FALSE(live.buffer_of[b.index()].valid());
  EXPECT_EQ(live.buffers.size(), 1U);
}

TEST(Buffer, HoldsTheNewestTenant) {
  const Program program = program_of(kA +
                                     "%b = relu(%a) : f32[2x4] activation in %a ; forward b\n"
                                     "b@1 = sum_to_channels(%b) : state ; update\n");
  const Buffer buffer = liveness(program.sections[0]).buffers[0];
  const auto tenant = [&](int node) { return program.sections[0].value(buffer.tenant_at(node)).name; };
  EXPECT_EQ(tenant(0), "a");
  EXPECT_EQ(tenant(1), "b");
  EXPECT_EQ(tenant(2), "b");
}

TEST(MemoryClass, FollowsFromTheRole) {
  EXPECT_EQ(name_of(class_of(Role::parameter)), "model");
  EXPECT_EQ(name_of(class_of(Role::statistic)), "model");
  EXPECT_EQ(name_of(class_of(Role::scalar)), "model");
  EXPECT_EQ(name_of(class_of(Role::gradient)), "gradient");
  EXPECT_EQ(name_of(class_of(Role::optimizer)), "optimizer");
  EXPECT_EQ(name_of(class_of(Role::activation)), "activation");
  EXPECT_EQ(name_of(class_of(Role::activation_gradient)), "activation");
  EXPECT_EQ(name_of(class_of(Role::workspace)), "workspace");
  EXPECT_EQ(name_of(class_of(Role::input)), "input");
}

}  // namespace
}  // namespace snug
