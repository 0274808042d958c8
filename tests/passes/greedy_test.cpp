#include "passes/checkpoint/greedy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/liveness.h"
#include "autodiff/differentiate.h"
#include "base/philox.h"
#include "before_after.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "meaning.h"
#include "passes/checkpoint/checkpoint.h"
#include "passes/checkpoint/greedy_order.h"
#include "passes/model/choose_recipes.h"
#include "passes/model/fuse.h"
#include "passes/share_bytes.h"
#include "support/cross_linked_network.h"

namespace snug::testing {
namespace {

Program checkpointed(const Program& program, const CheckpointStrategy& strategy, const AcceptingOptions& options = {}) {
  const AcceptingBackend backend(options);
  Program after = checkpoint(program, {.backend = backend, .methods = {.checkpoint = strategy}});
  verify(after, "after the pass");
  return after;
}

Program greedily(const Program& program, Bytes limit, const AcceptingOptions& options = {}) {
  return checkpointed(program, {.kind = CheckpointStrategy::Kind::greedy, .limit = limit}, options);
}

const Section& micro(const Program& program) { return *program.find_section(SectionKind::micro); }

// The most bytes alive at once, with outputs in the bytes of inputs that die.
Bytes peak_of(const Program& program) {
  const AcceptingBackend backend;
  const Program shared = share_bytes(program, {.backend = backend});
  std::vector<Bytes> alive(micro(shared).nodes.size());
  for (const Buffer& buffer : liveness(micro(shared)).buffers) {
    for (int at = buffer.begin; at < buffer.end; ++at) alive[static_cast<std::size_t>(at)] += round_up(buffer.size, kAlignment);
  }
  return *std::max_element(alive.begin(), alive.end());
}

int clones_of(const Program& program) {
  return static_cast<int>(std::ranges::count_if(micro(program).nodes, [](const Node& n) { return n.phase == Phase::recompute; }));
}

Program training(const Program& model) {
  const Program graph = fuse(model);
  return differentiate(choose_recipes(graph));
}

// ---- What comes out, as text. Values have 32 bytes, and take 64 each. ----

const std::string kForward =
    "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n"
    "%b = linear(%a, w@0) : f32[2x4] activation ; forward b\n"
    "%c = linear(%b, w@0) : f32[2x4] activation ; forward c\n"
    "w.grad@1 = linear_grad_weight(%c, %b) : state ; backward c\n";

TEST(Greedy, AValueThatRestsLongGoesAndComesBackBeforeItsReader) {
  const Program before = program_of(kForward + "b.grad@1 = sum_to_channels(%a) : state ; backward a\n");
  EXPECT_EQ(nodes_of(greedily(before, Bytes(128))), kForward +
                                                        "%a.again = linear(x@0, w@0) : f32[2x4] activation ; recompute a\n"
                                                        "b.grad@1 = sum_to_channels(%a.again) : state ; backward a\n");
}

TEST(Greedy, WhatAGoneValueIsMadeFromIsMadeAgainWithIt) {
  const std::string end =
      "%d = linear(%c, w@0) : f32[2x4] activation ; forward d\n"
      "w.grad@1 = linear_grad_weight(%d, %c) : state ; backward d\n";
  const std::string start = kForward.substr(0, kForward.find("w.grad@1"));
  const Program before = program_of(start + end + "b.grad@1 = sum_to_channels(%b) : state ; backward b\n");
  EXPECT_EQ(nodes_of(greedily(before, Bytes(128))), start + end +
                                                        "%a.again = linear(x@0, w@0) : f32[2x4] activation ; recompute a\n"
                                                        "%b.again = linear(%a.again, w@0) : f32[2x4] activation ; recompute b\n"
                                                        "b.grad@1 = sum_to_channels(%b.again) : state ; backward b\n");
}

TEST(Greedy, WithoutALimitAndWithOneThatIsNeverReachedNothingChanges) {
  const std::string nodes = kForward + "b.grad@1 = sum_to_channels(%a) : state ; backward a\n";
  EXPECT_EQ(nodes_of(greedily(program_of(nodes), Bytes(0))), nodes);
  EXPECT_EQ(nodes_of(greedily(program_of(nodes), Bytes(192))), nodes);
}

TEST(Greedy, WhatMayNotBeClonedStays) {
  // %a reads a state that the section writes later.
  const std::string nodes =
      "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n"
      "w@1 = fill(w@0) {value=1.0} : state ; forward w\n"
      "%b = linear(%a, w@1) : f32[2x4] activation ; forward b\n"
      "%c = linear(%b, w@1) : f32[2x4] activation ; forward c\n"
      "w.grad@1 = linear_grad_weight(%c, %b) : state ; backward c\n"
      "b.grad@1 = sum_to_channels(%a) : state ; backward a\n";
  EXPECT_EQ(nodes_of(greedily(program_of(nodes), Bytes(128))), nodes);
}

TEST(Greedy, AKernelsWorkspaceCounts) {
  const Program before = program_of(kForward + "b.grad@1 = sum_to_channels(%a) : state ; backward a\n");
  EXPECT_EQ(clones_of(greedily(before, Bytes(256))), 0);
  EXPECT_EQ(clones_of(greedily(before, Bytes(256), {.workspace = {{"linear_grad_weight", Bytes(128)}}})), 1);
}

// ---- Networks ----

TEST(Greedy, KeepsTheLimitWhereItCanAndComesNearWhereItCannot) {
  for (const char* model : {"small-cnn", "wrn-10-1", "wrn-28-2", "preresnet-29"}) {
    const Program before = training(frontend::build_zoo_model(model, {.batch = 4}));
    const Bytes plain = peak_of(before);
    const Program least = greedily(before, Bytes(1));
    EXPECT_LT(peak_of(least), plain) << model;
    int clones_above = 0;  // of a larger limit: none
    for (const double share : {1.0, 0.75, 0.5, 0.25}) {
      const Bytes limit(static_cast<std::int64_t>(static_cast<double>(plain.count()) * share));
      const Program after = greedily(before, limit);
      // Nothing keeps a limit below what was reached when the least was asked for, but to a hundredth.
      if (limit.count() > peak_of(least).count() * 101 / 100) {
        EXPECT_LE(peak_of(after), limit) << model << " " << share;
        EXPECT_GE(clones_of(after), clones_above) << model << " " << share;
        clones_above = clones_of(after);
      } else {
        EXPECT_LE(peak_of(after).count(), peak_of(least).count() * 103 / 100) << model << " " << share;
      }
      EXPECT_EQ(meaning_of(after), meaning_of(before)) << model << " " << share;
    }
  }
}

TEST(Greedy, SavesWhereThereIsNoChain) {
  const Program before = training(cross_linked_network(4));
  const Bytes plain = peak_of(before);
  const Program after = greedily(before, Bytes(plain.count() / 2));
  EXPECT_LE(peak_of(after), Bytes(plain.count() / 2));
  EXPECT_GT(clones_of(after), 0);
  EXPECT_EQ(meaning_of(after), meaning_of(before));
  // A strategy that looks for cuts finds none that would halve it.
  EXPECT_GT(peak_of(checkpointed(before, parse_checkpoint_strategy("sqrt"))), Bytes(plain.count() / 2));
}

// ---- Random programs ----

// Layers that read any one or two values before them; backward reads any of them, in any order.
Program random_program(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::size_t n) {
    return uniform_below(philox(seed, drawn++, 7).word[0], static_cast<std::uint32_t>(n));
  };
  std::string nodes;
  std::vector<std::string> values{"x@0"};
  std::string weight = "w@0";
  const std::size_t length = 5 + below(20);
  for (std::size_t i = 0; i < length; ++i) {
    const auto some = [&] { return values[values.size() - 1 - below(std::min<std::size_t>(values.size(), 4))]; };
    const std::array<std::string, 3> calls{fmt::format("linear({}, {})", some(), weight), fmt::format("relu({})", some()),
                                           fmt::format("add({}, {})", some(), some())};
    nodes += fmt::format("%v{} = {} : f32[2x4] activation ; forward\n", i, calls.at(below(3)));
    values.push_back(fmt::format("%v{}", i));
    // In some a state is written that nodes have read: those cannot be cloned.
    if (weight == "w@0" && below(40) == 0) {
      nodes += "w@1 = fill(w@0) {value=1.0} : state ; forward w\n";
      weight = "w@1";
    }
  }
  std::string gradient = values.back();
  const std::size_t reads = 3 + below(12);
  for (std::size_t i = 0; i < reads; ++i) {
    nodes += fmt::format("%w{} = linear_grad_weight({}, {}) : f32[4x4] gradient ; backward\n", i, gradient,
                         values[below(values.size())]);
    nodes += fmt::format("w.grad@{} = add(w.grad@{}, %w{}) : state ; backward\n", i + 1, i, i);
    nodes += fmt::format("%d{} = linear_grad_input({}, {}) : f32[2x4] activation_gradient ; backward\n", i, gradient, weight);
    gradient = fmt::format("%d{}", i);
  }
  return program_of(nodes + fmt::format("b.grad@1 = sum_to_channels({}) : state ; backward\n", gradient));
}

TEST(Greedy, RandomProgramsKeepTheirMeaningAndTheirLimit) {
  int with_clones = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Program before = random_program(seed);
    const Bytes least = peak_of(greedily(before, Bytes(1)));
    for (Bytes limit(192); limit < Bytes(1000); limit += Bytes(128)) {
      const Program after = greedily(before, limit);
      EXPECT_EQ(meaning_of(after), meaning_of(before));
      if (limit.count() > least.count() * 101 / 100) {
        EXPECT_LE(peak_of(after), limit);
      }
      with_clones += clones_of(after) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(with_clones, 300);
}

// ---- The planner alone ----

// A chain of which every value is read again in the end, in reverse.
OrderProblem chain(std::size_t length) {
  OrderProblem problem;
  for (Index i = 0; i < length; ++i) {
    problem.values.push_back({.bytes = Bytes(64), .maker = i, .may_leave = true});
    problem.nodes.push_back({.outputs = {i}, .seconds = 1, .may_repeat = true});
    if (i > 0) problem.nodes.back().inputs = {i - 1};
  }
  for (Index i = static_cast<Index>(length); i-- > 0;) problem.nodes.push_back({.inputs = {i}, .seconds = 2});
  return problem;
}

TEST(GreedyOrder, ALimitThatCannotBeKeptIsRefused) {
  EXPECT_FALSE(order_greedily(chain(10), Bytes(127)));
  EXPECT_EQ(order_greedily(chain(10), Bytes(640))->nodes.size(), 20);
}

TEST(GreedyOrder, KeepsTheLimitAndEndsOnALongChain) {
  for (const std::size_t length : {10, 100, 1000, 4000}) {
    const OrderProblem problem = chain(length);
    const auto values = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(length)));
    const std::optional<GreedyOrder> order = order_greedily(problem, Bytes(64) * values);
    ASSERT_TRUE(order) << length;
    EXPECT_LE(order->peak, Bytes(64) * values) << length;
    // With twice the square root of a chain's values, segments make each value again at most once.
    EXPECT_LE(order->nodes.size(), problem.nodes.size() + length * 3 / 2) << length;
  }
}

}  // namespace
}  // namespace snug::testing
