// `optimal` against the integer program, which may run any node again at any time.
#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/chain_program.h"
#include "autodiff/differentiate.h"
#include "before_after.h"
#include "frontend/graph_builder.h"
#include "integer_program.h"
#include "passes/accumulate_in_place.h"
#include "passes/checkpoint/chain_measures.h"
#include "passes/checkpoint/checkpoint.h"
#include "passes/checkpoint/clonable.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/model/choose_recipes.h"

namespace snug::testing {
namespace {

// What a plan costs beyond the exact solution, as shares of the whole step's cost.
class Gaps {
 public:
  void add(double gap) {
    sum_ += gap;
    worst_ = std::max(worst_, gap);
    ++count_;
  }
  double mean() const { return sum_ / count_; }
  void report(const char* what) const {
    const std::string text =
        fmt::format("mean gap {:.2f}% of the step, worst {:.2f}%, {} problems", 100 * mean(), 100 * worst_, count_);
    ::testing::Test::RecordProperty("gap", text);
    fmt::print("{}: {}\n", what, text);
  }

 private:
  double sum_ = 0;
  double worst_ = 0;
  int count_ = 0;
};

// A chain of blocks: block l reads x[l], makes h[l], and from both x[l + 1]. Its backward reads x[l], h[l] and the gradient of
// x[l + 1], and makes that of x[l]. Nothing is done in place. The chain's input x[0] is there throughout, for free.
struct Blocks {
  std::vector<int> x, h;  // bytes
  std::vector<int> first_cost, second_cost;
  std::size_t count() const { return h.size(); }
};

Blocks random_blocks(std::mt19937& random, int count) {
  const auto pick = [&](int from, int to) { return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1)); };
  Blocks blocks;
  blocks.x.push_back(0);
  for (int i = 0; i < count; ++i) {
    blocks.x.push_back(pick(2, 8));
    blocks.h.push_back(pick(2, 10));
    blocks.first_cost.push_back(pick(5, 30));
    blocks.second_cost.push_back(pick(5, 30));
  }
  return blocks;
}

std::vector<ChainLink> chain_of(const Blocks& blocks) {
  std::vector<ChainLink> links;
  for (std::size_t l = 0; l < blocks.count(); ++l) {
    const int h = blocks.h[l];
    const int next = blocks.x[l + 1];
    const bool is_last = l + 1 == blocks.count();
    const int gradient = is_last ? 0 : next;
    const double both = blocks.first_cost[l] + blocks.second_cost[l];
    links.push_back({.modes = {{.kept_bytes = h + next,
                                .forward_bytes = h + next,
                                .last_forward_bytes = h,
                                .backward_bytes = h + gradient + blocks.x[l],
                                .again_seconds = both,
                                .last_seconds = static_cast<double>(blocks.first_cost[l])}},
                     .carried_bytes = next,
                     .pass_bytes = h + next,
                     .pass_seconds = both,
                     .gradient_bytes = gradient});
  }
  return links;
}

RecomputationProblem problem_of(const Blocks& blocks) {
  RecomputationProblem problem;
  for (std::size_t l = 0; l < blocks.count(); ++l) {
    const std::size_t h = 2 * l;
    problem.forward.push_back({.cost = static_cast<double>(blocks.first_cost[l]), .bytes = static_cast<double>(blocks.h[l])});
    problem.forward.push_back(
        {.cost = static_cast<double>(blocks.second_cost[l]), .bytes = static_cast<double>(blocks.x[l + 1]), .reads = {h}});
    if (l == 0) continue;
    problem.forward[h].reads.push_back(h - 1);
    problem.forward[h + 1].reads.push_back(h - 1);
  }
  for (std::size_t l = blocks.count(); l-- > 0;) {
    BackwardStage stage{.reads = {2 * l}};
    if (l > 0) stage.reads.push_back(2 * l - 1);
    stage.bytes_before = l + 1 == blocks.count() ? 0 : blocks.x[l + 1];
    stage.bytes = stage.bytes_before + blocks.x[l];
    problem.backward.push_back(stage);
  }
  return problem;
}

// Backward costs twice as much as forward, as products do.
double step_cost(const Blocks& blocks) {
  double forward = 0;
  for (std::size_t l = 0; l < blocks.count(); ++l) forward += blocks.first_cost[l] + blocks.second_cost[l];
  return 3 * forward;
}

TEST(ChainAgainstIntegerProgram, IsWithinTwoPercentOfTheStepOnAverage) {
  std::mt19937 random(7);
  Gaps gaps;
  for (int graph = 0; graph < 20; ++graph) {
    const Blocks blocks = random_blocks(random, graph % 10 < 7 ? 5 : graph % 10 - 1);
    const std::vector<ChainLink> links = chain_of(blocks);
    ChainPlan all;
    all.region.assign(links.size(), 0);
    all.mode.assign(links.size(), 0);
    const std::int64_t most = run_chain(links, all).peak_bytes;
    const ChainProgram program(links, most, most);
    const std::int64_t least = program.steps().front();
    std::vector<std::int64_t> parts{2};
    if (blocks.count() <= 6) parts = {5, 3, 2};  // larger problems with little room take CBC minutes
    for (const std::int64_t part : parts) {
      const std::int64_t bytes = least + (most - least) / part;
      const double found = program.seconds(bytes);
      const std::optional<double> exact = least_recomputation(problem_of(blocks), static_cast<double>(bytes), found);
      ASSERT_TRUE(exact) << "graph " << graph << ", " << bytes << " bytes: the program has a plan and CBC has none";
      EXPECT_GE(found, *exact - 1e-6) << "graph " << graph << ", " << bytes << " bytes";
      gaps.add((found - *exact) / (step_cost(blocks) + *exact));
    }
  }
  gaps.report("chains of blocks");
  EXPECT_LE(gaps.mean(), 0.02);
}

// Linear layers, ReLUs and sums over whatever was made before: skips of any length, branches that end anywhere.
Program random_graph(std::mt19937& random) {
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random()) % count; };
  frontend::GraphBuilder b("random", 4);
  std::vector<ValueId> values{b.features({16})};
  std::set<ValueId> unread;
  const auto width = [&](ValueId id) { return b.type_of(id).shape[1]; };
  const auto made = [&](ValueId id, std::initializer_list<ValueId> reads) {
    for (const ValueId read : reads) unread.erase(read);
    values.push_back(id);
    unread.insert(id);
  };
  for (int i = 0; i < 9; ++i) {
    const std::string name = "n" + std::to_string(i);
    const ValueId x = values[values.size() - 1 - pick(std::min<std::size_t>(3, values.size()))];
    const ValueId y = values[pick(values.size())];
    if (x != y && width(x) == width(y)) {
      made(b.add(name, x, y), {x, y});
    } else if (pick(4) == 0) {
      made(b.relu(name, x), {x});
    } else {
      made(b.linear(name, x, 8 + 8 * static_cast<std::int64_t>(pick(4)), {.bias = false}), {x});
    }
  }
  std::vector<ValueId> ends(unread.begin(), unread.end());
  ValueId logits = b.linear("end0", ends[0], 8, {.bias = false});
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const std::string number = std::to_string(i);
    logits = b.add("sum" + number, logits, b.linear("end" + number, ends[i], 8, {.bias = false}));
  }
  b.softmax_cross_entropy(logits);
  return std::move(b).finish();
}

// The section, without sharing, as the integer program sees it.
RecomputationProblem problem_of(const Section& section, const CostTable& costs) {
  const ForwardPass forward = find_forward_pass(section);
  const std::vector<bool> may_clone = find_clonable_nodes(section, forward.end);
  RecomputationProblem problem;
  const auto forward_reads = [&](const Node& node) {
    std::set<std::size_t> reads;
    for (const ValueId input : node.inputs) {
      if (forward.makes(input)) reads.insert(forward.maker[input.index()].index());
    }
    return std::vector<std::size_t>(reads.begin(), reads.end());
  };
  for (std::size_t i = 0; i < forward.end; ++i) {
    const Node& node = section.nodes[i];
    ForwardNode made{.cost = node_seconds(costs, section, node), .reads = forward_reads(node), .may_run_again = may_clone[i]};
    for (const ValueId output : node.outputs) {
      if (!section.value(output).is_state()) made.bytes += static_cast<double>(section.value(output).type.bytes().count());
    }
    problem.forward.push_back(std::move(made));
  }
  const std::vector<ValueLife> lives = value_lives(section);
  const auto gradient_bytes = [&](std::size_t at, bool with_results) {
    double bytes = 0;
    for (std::size_t v = 0; v < section.values.size(); ++v) {
      const NodeId producer = lives[v].producer;
      if (section.values[v].is_state() || !producer.valid() || producer.index() < forward.end) continue;
      const bool is_there = with_results ? producer.index() <= at : producer.index() < at;
      if (is_there && lives[v].last_use.index() >= at) bytes += static_cast<double>(section.values[v].type.bytes().count());
    }
    return bytes;
  };
  for (std::size_t i = forward.end; i < section.nodes.size(); ++i) {
    const std::vector<std::size_t> reads = forward_reads(section.nodes[i]);
    if (!reads.empty()) {
      problem.backward.push_back({.reads = reads, .bytes_before = gradient_bytes(i, false), .bytes = gradient_bytes(i, true)});
    } else if (!problem.backward.empty()) {
      BackwardStage& stage = problem.backward.back();
      stage.bytes_after = std::max(stage.bytes_after, gradient_bytes(i, true));
    }
  }
  return problem;
}

// Where the graph is no chain, links are large and what is kept inside one is all or nothing. The gap is only reported. Both have
// the same model, liveness without sharing: the integer program is given the bytes that the plan of `optimal` takes.
TEST(GeneralGraphsAgainstIntegerProgram, TheGapIsReported) {
  const AcceptingBackend backend;
  std::mt19937 random(11);
  Gaps gaps;
  int recomputing = 0;
  for (int graph = 0; graph < 20; ++graph) {
    const Program model = random_graph(random);
    const Program program = eliminate_dead_nodes(differentiate(choose_recipes(model)), {.backend = backend});
    const Section& before = *program.find_section(SectionKind::micro);
    CostTable costs;
    double forward_cost = 0;
    for (const Node& node : before.nodes) {
      const double cost =
          costs.measured.try_emplace(cost_key(before, node), 5 + static_cast<double>(random() % 26)).first->second;
      if (node.phase == Phase::forward) forward_cost += cost;
    }
    const auto planned = [&](const CheckpointStrategy& strategy) {
      const PassContext context{.backend = backend, .methods = {.checkpoint = strategy}, .costs = costs};
      return accumulate_in_place(checkpoint(program, context), context);
    };
    const Program plain = planned({});
    const RecomputationProblem problem = problem_of(*plain.find_section(SectionKind::micro), costs);
    const std::int64_t most = fullest_bytes(*plain.find_section(SectionKind::micro));
    const Program plan = planned({.kind = CheckpointStrategy::Kind::optimal, .limit = Bytes(most / 2)});
    const Section& section = *plan.find_section(SectionKind::micro);
    double found = 0;
    for (const Node& node : section.nodes) found += node.phase == Phase::recompute ? node_seconds(costs, section, node) : 0;
    const auto bytes = static_cast<double>(fullest_bytes(section));
    const std::optional<double> exact = least_recomputation(problem, bytes, found);
    ASSERT_TRUE(exact) << "graph " << graph << ": a plan takes " << bytes << " bytes and CBC finds none\n" << print(plan);
    EXPECT_GE(found, *exact - 1e-6) << "graph " << graph;
    gaps.add((found - *exact) / (3 * forward_cost + *exact));
    recomputing += found > 0 ? 1 : 0;
  }
  gaps.report("general graphs");
  EXPECT_GE(recomputing, 8);
}

}  // namespace
}  // namespace snug::testing
