#include "plan/plan.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph_builder.h"
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

constexpr const char* kStates =
    "state x : f32[2x8] input\n"      // 64 bytes at 0
    "state w : f32[8x8] parameter\n"  // 256 bytes at 64
    "state b : f32[9] parameter\n";   // 36 bytes at 320, ends at 356

constexpr const char* kForward =
    "section micro\n"
    "  %a = linear(x@0, w@0) : f32[2x8] activation ; forward a\n"
    "  %r = relu(%a) : f32[2x8] activation ; forward r\n"
    "  %s = linear(%r, w@0) : f32[2x8] activation using k workspace %s.workspace u8[100] ; forward s\n"
    "  w@1 = linear_grad_weight(%r, %s) : state ; backward s\n";

TEST(Place, StatesComeFirstOnBoundaries) {
  const Plan plan = place(program_of(std::string(kStates) + kForward));
  EXPECT_EQ(plan.state_offsets, (std::vector<Bytes>{Bytes(0), Bytes(64), Bytes(320)}));
  EXPECT_EQ(plan.persistent_bytes, Bytes(384));
  for (const Bytes offset : plan.sections[0].offsets) EXPECT_GE(offset, plan.persistent_bytes);
}

TEST(Place, ThePeakIsTheLastByteUsedAndIsNotRounded) {
  // At %s: %r and %s of 64 bytes, and 100 of workspace, which may lie on top and needs no boundary behind it.
  const Plan plan = place(program_of(std::string(kStates) + kForward));
  EXPECT_EQ(plan.planned_peak_bytes, Bytes(384 + 64 + 64 + 100));
  EXPECT_EQ(plan.bound_bytes, plan.planned_peak_bytes);
}

TEST(Place, WithoutTransientValuesTheArenaEndsWithTheLastState) {
  const Plan plan = place(program_of(std::string(kStates) + "section init\n  b@1 = fill(b@0) {value=0.0} : state ; init\n"));
  EXPECT_EQ(plan.planned_peak_bytes, Bytes(356));
  EXPECT_EQ(plan.bound_bytes, Bytes(356));
  EXPECT_EQ(plan.sections[0].method, "nothing to place");
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_EQ(peak_moment(plan).gap_bytes, Bytes(0));
}

TEST(Place, ADeadHeightOfAnEmptySectionDoesNotHideTheStates) {
  Plan plan = place(program_of(std::string(kStates) + "section init\n"));
  plan.sections[0].height = Bytes(64);
  EXPECT_NE(find_violation(plan), std::nullopt);
}

TEST(Place, AProgramOfNothingTakesNothing) {
  const Plan plan = place(program_of(""));
  EXPECT_EQ(plan.planned_peak_bytes, Bytes(0));
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_EQ(peak_moment(plan).gap_bytes, Bytes(0));
}

TEST(Place, TheTransientRegionIsAsLargeAsTheLargestSectionNeeds) {
  const Plan plan = place(program_of(std::string(kStates) + kForward +
                                     "section eval\n"
                                     "  %a = linear(x@0, w@0) : f32[2x8] activation ; forward a\n"));
  ASSERT_EQ(plan.sections.size(), 2U);
  EXPECT_EQ(plan.sections[1].height, Bytes(64));
  EXPECT_EQ(plan.planned_peak_bytes, plan.persistent_bytes + plan.sections[0].height);
  EXPECT_EQ(peak_moment(plan).section, SectionKind::micro);
}

TEST(Place, RedZonesKeepTheirDistance) {
  const Bytes zone(128);
  const Plan plan = place(program_of(std::string(kStates) + kForward), zone);
  EXPECT_EQ(plan.state_offsets, (std::vector<Bytes>{Bytes(128), Bytes(448), Bytes(960)}));
  EXPECT_EQ(plan.persistent_bytes, Bytes(1152));  // 960 + 36 + 128, rounded up
  EXPECT_EQ(find_violation(plan), std::nullopt);
  const SectionPlan& placed = plan.sections[0];
  for (std::size_t i = 0; i < placed.offsets.size(); ++i) {
    EXPECT_GE(placed.offsets[i] - zone, plan.persistent_bytes);
    EXPECT_LE(placed.offsets[i] + placed.liveness.buffers[i].size + zone, plan.planned_peak_bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer& a = placed.liveness.buffers[i];
      const Buffer& b = placed.liveness.buffers[j];
      if (a.begin >= b.end || b.begin >= a.end) continue;
      const bool apart = placed.offsets[i] + a.size + zone * 2 <= placed.offsets[j] ||
                         placed.offsets[j] + b.size + zone * 2 <= placed.offsets[i];
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
  EXPECT_THROW(place(program_of(kStates), Bytes(8)), InternalError);
}

TEST(Place, SizesThatCannotBeCountedAreRefused) {
  std::string states;
  std::string nodes = "section micro\n";
  for (int i = 0; i < 5000; ++i) {
    states += fmt::format("state s{} : f64[281474976710656] parameter\n", i);
    nodes += fmt::format("  %v{} = relu(s0@0) : f64[281474976710656] activation ; forward\n", i);
  }
  for (const std::string& text : {states, states.substr(0, states.find('\n') + 1) + nodes}) {
    try {
      place(program_of(text));
      FAIL() << "accepted";
    } catch (const UserError& error) {
      EXPECT_TRUE(support::mentions(error.what(), {"'test'", "together", "2^60"}));
    }
  }
}

TEST(Plan, KnowsWhereEveryValueLies) {
  const Plan plan = place(program_of(std::string(kStates) + "section micro\n"
                                                            "  %a = linear(x@0, w@0) : f32[2x8] activation ; forward a\n"
                                                            "  %r = relu(%a) : f32[2x8] activation in %a ; forward r\n"
                                                            "  w@1 = linear_grad_weight(%r, %r) : state ; backward s\n"));
  const Section& section = plan.program.sections[0];
  const auto offset = [&](ValueId id) { return plan.offset_of(0, id); };
  EXPECT_EQ(offset(section.nodes[0].inputs[1]), Bytes(64));
  EXPECT_EQ(offset(section.nodes[2].outputs[0]), Bytes(64));  // every version of a state lies in the state's bytes
  EXPECT_EQ(offset(section.nodes[0].outputs[0]), plan.persistent_bytes);
  EXPECT_EQ(offset(section.nodes[1].outputs[0]), plan.persistent_bytes);
}

TEST(Plan, OfAValueThatNothingMakesHasNoOffset) {
  Program program = program_of(std::string(kStates) + "section micro\n  %a = relu(x@0) : f32[2x8] activation ; forward a\n");
  program.sections[0].nodes.clear();
  const Plan plan = place(std::move(program));
  EXPECT_THROW(plan.offset_of(0, ValueId(0)), InternalError);
}

TEST(PeakMoment, ListsWhatIsAliveAtTheFullestNode) {
  const PeakMoment peak = peak_moment(place(program_of(std::string(kStates) + kForward)));
  EXPECT_EQ(peak.node, 2);
  EXPECT_TRUE(peak.node_text.starts_with("%s = linear(%r, w@0)")) << peak.node_text;
  std::string largest;
  for (const LiveValue& value : peak.largest)
    largest += fmt::format("{} {} {}\n", value.name, value.size.count(), name_of(value.memory_class));
  EXPECT_EQ(largest,
            "w 256 model\n"
            "s.workspace 100 workspace\n"
            "x 64 input\n"
            "r 64 activation\n"
            "s 64 activation\n"
            "b 36 model\n");
  EXPECT_EQ(peak.by_class[static_cast<std::size_t>(MemoryClass::model)], Bytes(292));
  EXPECT_EQ(peak.by_class[static_cast<std::size_t>(MemoryClass::workspace)], Bytes(100));
  EXPECT_EQ(peak.gap_bytes, Bytes(28));  // behind b
}

// What lifetimes demand, with some passes turned off.
Bytes bound_without(const ZooModel& model, std::int64_t batch, const std::vector<std::string>& disabled) {
  const AcceptingBackend backend;
  return compile(build(model, batch), backend, {.passes = {.disabled = disabled}}).bound_bytes;
}

TEST(Compile, SharingBytesSavesThem) {
  EXPECT_EQ(bound_without({"small-cnn"}, 100, {"share_bytes"}) - bound_without({"small-cnn"}, 100, {}), Bytes(3'762'560));
}

TEST(Compile, AccumulatingInPlaceSavesAFreshGradient) {
  // The largest layer of this network is its second: 4096 x 4096 weights.
  EXPECT_GT(bound_without({"vgg-16", 32}, 1, {"accumulate_in_place"}),
            bound_without({"vgg-16", 32}, 1, {}) + Bytes(4 * 4096 * 4000));
}

TEST(Compile, NoPassEverCostsBytes) {
  for (const ZooModel& model : kZooModels) {
    const Bytes all = bound_without(model, 3, {});
    for (const char* pass : {"accumulate_in_place", "share_bytes", "eliminate_dead_nodes"}) {
      EXPECT_GE(bound_without(model, 3, {pass}), all) << model.name << " without " << pass;
    }
  }
}

TEST(Compile, TurningAPassOffLeavesAValidPlan) {
  const AcceptingBackend backend;
  const Program graph = build({"vgg-16", 32}, 2);
  const Plan plan =
      compile(graph, backend, {.passes = {.disabled = {"accumulate_in_place", "share_bytes", "eliminate_dead_nodes"}}});
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_EQ(print(plan.program).find(" in %"), std::string::npos);
  EXPECT_EQ(print(plan.program).find("accumulate=1"), std::string::npos);
}

TEST(Compile, WhatAnyPassLeavesPrintsAndParsesBack) {
  const AcceptingBackend backend;
  for (const Pass& pass : pipeline()) {
    std::string text;
    PassOptions options{.dump_after = std::string(pass.name),
                        .dump = [&](std::string_view /*pass*/, const std::string& dumped) { text = dumped; }};
    // Each pass has something to do; what looks at sums of gradients does not go with dropped ones.
    const bool drops = pass.name == "drop_gradients";
    compile(build({"wrn-28-2"}, 4), backend,
            {.methods = {.precision = DType::bf16,
                         .nonzero = drops ? 1.0 : 0.3,
                         .checkpoint = CheckpointStrategy{.kind = CheckpointStrategy::Kind::sqrt},
                         .compress_bits = pass.name == "compress_activations" ? std::optional<std::int64_t>(4) : std::nullopt,
                         .offload = pass.name == "offload_activations",
                         .drop_gradients = drops,
                         .fuse_update = pass.name == "fuse_update",
                         .prepack_weights = pass.name == "prepack_weights"},
             .update = {.settings = ops::sgd_settings({.nesterov = false})},
             .passes = options});
    ASSERT_FALSE(text.empty()) << pass.name;
    const Program read = parse_program(text, ops::find);
    EXPECT_TRUE(print(read) == text) << pass.name;
    EXPECT_EQ(find_defect(read), std::nullopt) << pass.name;
  }
}

TEST(Compile, TimesEveryPassThatRuns) {
  const AcceptingBackend backend;
  const Plan plan = compile(build({"wrn-10-1"}, 1), backend);
  const std::vector<Pass> passes = pipeline();
  const auto always = std::count_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.is_asked_for == nullptr; });
  EXPECT_EQ(plan.pass_timings.size(), static_cast<std::size_t>(always));
  double sum = 0;
  for (const PassTiming& timing : plan.pass_timings) sum += timing.seconds;
  EXPECT_GE(plan.plan_seconds, sum);
}

TEST(Compile, IsReproducible) {
  const AcceptingBackend backend;
  const Plan first = compile(build({"preresnet-29"}, 3), backend);
  const Plan second = compile(build({"preresnet-29"}, 3), backend);
  EXPECT_EQ(print(first.program), print(second.program));
  EXPECT_EQ(first.state_offsets, second.state_offsets);
  for (std::size_t i = 0; i < first.sections.size(); ++i) EXPECT_EQ(first.sections[i].offsets, second.sections[i].offsets);
}

TEST(Compile, WorkspaceIsBookedAndCounted) {
  const Program graph = build({"wrn-10-1"}, 4);
  const auto peak = [&](std::int64_t workspace) {
    const AcceptingBackend backend({.workspace = {{"conv2d_grad_input", Bytes(workspace)}}});
    return compile(graph, backend);
  };
  const Plan with = peak(50'000'000);
  EXPECT_EQ(peak_moment(with).by_class[static_cast<std::size_t>(MemoryClass::workspace)], Bytes(50'000'000));
  EXPECT_GT(with.planned_peak_bytes, peak(0).planned_peak_bytes + Bytes(40'000'000));
}

// A weight's fresh gradient is a value that counts, but only until it is added: the data gradient's kernel runs without it.
TEST(Compile, ARefusedAccumulationCostsATemporaryThatDiesAtOnce) {
  frontend::GraphBuilder b("model", 1);
  ValueId x = b.linear("a", b.features({8}), 1000, {.bias = false});
  b.softmax_cross_entropy(b.linear("b", x, 1000, {.bias = false}));
  const Program graph = std::move(b).finish();
  const auto gradients_at = [&](const AcceptingOptions& options, std::string_view op) {
    const AcceptingBackend backend(options);
    const Plan plan = compile(graph, backend);
    const Section& micro = plan.program.sections[1];
    Bytes sum;
    for (std::size_t i = 0; i < micro.nodes.size(); ++i) {
      if (micro.nodes[i].op->name != op || micro.nodes[i].layer != "b") continue;
      for (const Buffer& buffer : plan.sections[1].liveness.buffers) {
        const bool alive = buffer.begin <= static_cast<int>(i) && static_cast<int>(i) < buffer.end;
        if (alive && micro.value(buffer.tenants.front().value).role == Role::gradient) sum += buffer.size;
      }
    }
    return sum;
  };
  const AcceptingOptions refusing{.refuses_accumulation = {"linear_grad_weight"}};
  EXPECT_EQ(gradients_at({}, "linear_grad_weight"), Bytes(0));
  EXPECT_EQ(gradients_at(refusing, "linear_grad_weight"), Bytes(4'000'000));
  EXPECT_EQ(gradients_at(refusing, "linear_grad_input"), Bytes(0));
}

}  // namespace
}  // namespace snug::testing
