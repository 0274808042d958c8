// Values and states in host memory: placed in an arena of their own, by the same rules, and judged by the same judge.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "support/messages.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

Program program_of(const std::string& text) {
  Program program = parse_program("program test batch 2 microbatch 2\n" + text, ops::find);
  verify(program, "in the test's own text");
  return program;
}

// Two values wait in host memory at the same time, a third behind them.
constexpr const char* kTwoMemories =
    "state x : f32[2x8] input\n"           // 64 bytes at 0
    "state h : f32[9] parameter host\n"    // 36 bytes at 0 of the host's
    "state w : f32[8x8] parameter\n"       // 256 bytes at 64
    "state m : f32[2x8] optimizer host\n"  // 64 bytes at 64 of the host's
    "section micro\n"
    "  %a = relu(x@0) : f32[2x8] activation ; forward a\n"
    "  %a.host = copy_to_space(%a) {host=1} : f32[2x8] activation host ; forward a\n"
    "  %b = linear(%a, w@0) : f32[2x8] activation ; forward b\n"
    "  %b.host = copy_to_space(%b) {host=1} : f32[2x8] activation host ; forward b\n"
    "  %b.back = copy_to_space(%b.host) {host=0} : f32[2x8] activation ; backward b\n"
    "  %a.back = copy_to_space(%a.host) {host=0} : f32[2x8] activation ; backward b\n"
    "  %c = add(%a.back, %b.back) : f32[2x8] activation ; backward b\n"
    "  m@1 = copy_to_space(%c) {host=1} : state ; backward b\n";

TEST(Spaces, EachMemoryIsPlacedByItself) {
  const Plan plan = place(program_of(kTwoMemories));
  EXPECT_EQ(plan.state_offsets, (std::vector<Bytes>{Bytes(0), Bytes(0), Bytes(64), Bytes(64)}));
  EXPECT_EQ(plan.persistent_bytes, Bytes(320));
  EXPECT_EQ(plan.host.persistent_bytes, Bytes(128));
  EXPECT_EQ(plan.planned_peak_bytes, Bytes(320 + 3 * 64));  // at %c: two operands and the sum
  EXPECT_EQ(plan.host.planned_peak_bytes, Bytes(128 + 2 * 64));
  EXPECT_EQ(plan.host.bound_bytes, plan.host.planned_peak_bytes);
  EXPECT_EQ(plan.sections[0].height, Bytes(3 * 64));
  EXPECT_EQ(plan.sections[0].host.height, Bytes(2 * 64));
  const Section& section = plan.program.sections[0];
  for (const Node& node : section.nodes) {
    for (const ValueId id : node.outputs) {
      const Value& value = section.value(id);
      const ArenaPlan& arena = plan.in(value.space);
      EXPECT_LE(plan.offset_of(0, id) + value.type.bytes(), arena.planned_peak_bytes) << value.name;
      EXPECT_EQ(plan.offset_of(0, id) >= arena.persistent_bytes, !value.is_state()) << value.name;
    }
  }
}

TEST(Spaces, TheFullestMomentIsTheDevices) {
  const PeakMoment peak = peak_moment(place(program_of(kTwoMemories)));
  EXPECT_EQ(peak.node, 6);
  Bytes sum;
  for (const Bytes bytes : peak.by_class) sum += bytes;
  EXPECT_EQ(sum, Bytes(64 + 256 + 3 * 64));
  EXPECT_EQ(peak.gap_bytes, Bytes(0));
  for (const LiveValue& value : peak.largest) {
    EXPECT_TRUE(value.name != "h" && value.name != "m" && !value.name.ends_with(".host")) << value.name;
  }
}

TEST(Spaces, StatesAloneMakeAnArenaThatEndsWithTheLast) {
  const Plan plan = place(program_of("state h : f32[4] parameter host\n"));
  EXPECT_EQ(plan.planned_peak_bytes, Bytes(0));
  EXPECT_EQ(plan.host.planned_peak_bytes, Bytes(16));
  EXPECT_EQ(plan.host.persistent_bytes, Bytes(64));
}

TEST(Spaces, AProgramWithoutHostValuesTakesNoHostMemory) {
  const AcceptingBackend backend;
  const Plan plan = compile(build({"small-cnn"}, 2), backend);
  EXPECT_EQ(plan.host.planned_peak_bytes, Bytes(0));
  EXPECT_EQ(plan.host.bound_bytes, Bytes(0));
  EXPECT_EQ(plan.host.persistent_bytes, Bytes(0));
}

TEST(Spaces, RedZonesKeepTheirDistanceInBoth) {
  const Bytes zone(64);
  const Plan plan = place(program_of(kTwoMemories), zone);
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_EQ(plan.state_offsets, (std::vector<Bytes>{Bytes(64), Bytes(64), Bytes(256), Bytes(256)}));
  EXPECT_EQ(plan.host.planned_peak_bytes, plan.host.persistent_bytes + (Bytes(64) + zone * 2) * 2);
}

TEST(Spaces, ViolationsInHostMemoryAreFoundAndNamed) {
  const Plan sound = place(program_of(kTwoMemories));
  const std::vector<std::size_t> waiting = buffers_in(sound.sections[0].liveness, MemorySpace::host);
  ASSERT_EQ(waiting.size(), 2U);
  const auto complaint = [&](const std::function<void(Plan&)>& damage) {
    Plan plan = sound;
    damage(plan);
    return find_violation(plan).value_or("");
  };
  EXPECT_EQ(complaint([](Plan& /*plan*/) {}), "");
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.state_offsets[3] = Bytes(0); }), {"'m'", "0", "overlaps"}));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.state_offsets[1] = Bytes(8); }), {"'h'", "8", "alignment"}));
  EXPECT_TRUE(
      support::mentions(complaint([](Plan& plan) { plan.host.persistent_bytes -= kAlignment; }), {"host memory", "persistent"}));
  EXPECT_TRUE(support::mentions(complaint([](Plan& plan) { plan.host.planned_peak_bytes += Bytes(1); }), {"257", "used", "256"}));
  const std::string overlap = complaint([&](Plan& plan) {
    std::vector<Bytes>& offsets = plan.sections[0].offsets;
    offsets[waiting[0]] = offsets[waiting[1]] = std::max(offsets[waiting[0]], offsets[waiting[1]]);
  });
  EXPECT_TRUE(support::mentions(overlap, {"host memory", "items 0 and 1"})) << overlap;
  EXPECT_EQ(complaint([&](Plan& plan) { plan.sections[0].offsets[waiting[0]] += Bytes(64 * 1000); }).substr(0, 31),
            "in host memory: section micro: ");
  EXPECT_EQ(complaint([](Plan& plan) { plan.sections[0].host.height += kAlignment; }).substr(0, 31),
            "in host memory: section micro: ");
}

TEST(Spaces, TextReadsBackToTheSamePlan) {
  const AcceptingBackend backend({.workspace = {{"conv2d", Bytes(1000)}}});
  const Plan plan = compile(build({"small-cnn"}, 2), backend, {.methods = {.offload = true}});
  EXPECT_GT(plan.host.planned_peak_bytes, Bytes(0));
  const std::string text = print(plan.program);
  const Program read = parse_program(text, ops::find);
  ASSERT_TRUE(print(read) == text);
  EXPECT_EQ(find_defect(read), std::nullopt);
  const Plan again = place(read);
  EXPECT_EQ(again.planned_peak_bytes, plan.planned_peak_bytes);
  EXPECT_EQ(again.host.planned_peak_bytes, plan.host.planned_peak_bytes);
}

}  // namespace
}  // namespace snug::testing
