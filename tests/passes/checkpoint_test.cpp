#include "passes/checkpoint/checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "before_after.h"
#include "frontend/zoo.h"
#include "passes/checkpoint/forward_chain.h"
#include "passes/checkpoint/recompute.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/model/choose_recipes.h"
#include "passes/model/fuse.h"

namespace snug::testing {
namespace {

std::string checkpointed(std::string_view strategy, std::string_view nodes) {
  const AcceptingBackend backend;
  const Program program =
      checkpoint(program_of(nodes), {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy(strategy)}});
  verify(program, "after the pass");
  return nodes_of(program);
}

// A chain of layers; backward goes through it from its end and reads every layer's input.
std::string forward_layer(const std::string& name, const std::string& input, const std::string& phase = "forward") {
  return "%" + name + " = linear(" + input + ", w@0) : f32[2x4] activation ; " + phase + " " + name.substr(0, 1) + "\n";
}

std::string backward_layer(const std::string& name, const std::string& input, const std::string& gradient, int version) {
  const std::string before = std::to_string(version);
  return "%w" + name + " = linear_grad_weight(" + gradient + ", " + input + ") : f32[4x4] gradient ; backward " + name + "\n" +
         "w.grad@" + std::to_string(version + 1) + " = add(w.grad@" + before + ", %w" + name + ") : state ; backward " + name +
         "\n" + "%d" + name + " = linear_grad_input(" + gradient + ", w@0) : f32[2x4] activation_gradient ; backward " + name +
         "\n";
}

const std::string kForward =
    forward_layer("a", "x@0") + forward_layer("b", "%a") + forward_layer("c", "%b") + forward_layer("d", "%c");
const std::string kLast = "b@1 = sum_to_channels(%da) : state ; backward a\n";

TEST(Checkpoint, ADroppedValueIsMadeAgainJustBeforeBackwardReadsIt) {
  EXPECT_EQ(checkpointed("every-2", kForward + backward_layer("d", "%c", "%d", 0) + backward_layer("c", "%b", "%dd", 1) +
                                        backward_layer("b", "%a", "%dc", 2) + backward_layer("a", "x@0", "%db", 3) + kLast),
            kForward + backward_layer("d", "%c", "%d", 0) + backward_layer("c", "%b", "%dd", 1) +
                forward_layer("a.again", "x@0", "recompute") + backward_layer("b", "%a.again", "%dc", 2) +
                backward_layer("a", "x@0", "%db", 3) + kLast);
}

std::string recomputed_with(const std::string& nodes, const Recomputation& what) {
  Program program = program_of(nodes);
  recompute(program.sections.front(), find_forward_pass(program.sections.front()), what);
  verify(program, "after the rewrite");
  return nodes_of(program);
}

TEST(Checkpoint, SingleValuesStayOrAreDropped) {
  const std::string nodes = kForward + backward_layer("d", "%c", "%d", 0) + backward_layer("c", "%b", "%dd", 1) +
                            backward_layer("b", "%a", "%dc", 2) + backward_layer("a", "x@0", "%db", 3) + kLast;
  Recomputation what{.regions = {}, .renews = std::vector<bool>(4, false)};
  what.regions.of_node.assign(4, 0);
  what.drops = {true, true, false, false};
  // b comes back from x, and brings a back for itself alone: nothing else is there then.
  EXPECT_EQ(recomputed_with(nodes, what),
            kForward + backward_layer("d", "%c", "%d", 0) + forward_layer("a.again", "x@0", "recompute") +
                forward_layer("b.again", "%a.again", "recompute") + backward_layer("c", "%b.again", "%dd", 1) +
                forward_layer("a.again.2", "x@0", "recompute") + backward_layer("b", "%a.again.2", "%dc", 2) +
                backward_layer("a", "x@0", "%db", 3) + kLast);
  what.drops = {};
  what.regions.of_node = {1, 1, 1, 0};
  what.regions.parent = {0, 0};
  what.stays = {false, true, false, false};
  // The first three run again, but what the second makes has stayed.
  EXPECT_EQ(recomputed_with(nodes, what), kForward + backward_layer("d", "%c", "%d", 0) + backward_layer("c", "%b", "%dd", 1) +
                                              forward_layer("a.again", "x@0", "recompute") +
                                              backward_layer("b", "%a.again", "%dc", 2) + backward_layer("a", "x@0", "%db", 3) +
                                              kLast);
}

// Of eight layers' values d, f, g and h stay. e comes back alone; then a, b and c are run again for b and c, and at last a for
// itself.
TEST(Checkpoint, HalvesOfHalvesNestRecomputation) {
  const std::string names = "abcdefgh";
  std::string nodes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    nodes += forward_layer(names.substr(i, 1), i == 0 ? "x@0" : "%" + names.substr(i - 1, 1));
  }
  std::string gradient = "%h";
  for (std::size_t i = names.size(); i-- > 0;) {
    nodes += backward_layer(names.substr(i, 1), i == 0 ? "x@0" : "%" + names.substr(i - 1, 1), gradient,
                            static_cast<int>(names.size() - 1 - i));
    gradient = "%d" + names.substr(i, 1);
  }
  const AcceptingBackend backend;
  const Program program =
      checkpoint(program_of(nodes + kLast), {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy("log")}});
  std::string recomputed;
  std::string last_backward;
  for (const Node& node : program.sections[0].nodes) {
    if (node.phase == Phase::recompute) recomputed += node.layer + " behind " + last_backward + "'s, ";
    if (node.phase == Phase::backward) last_backward = node.layer;
  }
  EXPECT_EQ(recomputed, "e behind g's, a behind e's, b behind e's, c behind e's, a behind c's, ");
}

TEST(Checkpoint, WhereNothingIsToBeDroppedNothingChanges) {
  const std::string nodes = kForward + backward_layer("d", "%c", "%d", 0) + backward_layer("c", "%b", "%dd", 1) +
                            backward_layer("b", "%a", "%dc", 2) + backward_layer("a", "x@0", "%db", 3) + kLast;
  for (const char* strategy : {"none", "no-bn", "every-4", "every-9223372036854775807"}) {
    EXPECT_EQ(checkpointed(strategy, nodes), nodes) << strategy;
  }
}

TEST(Checkpoint, WhatReadsAStateThatIsWrittenLaterStays) {
  const std::string nodes =
      "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n"
      "w@1 = fill(w@0) {value=1.0} : state ; forward w\n"
      "%b = linear(%a, w@1) : f32[2x4] activation ; forward b\n"
      "%c = linear(%b, w@1) : f32[2x4] activation ; forward c\n"
      "w.grad@1 = linear_grad_weight(%c, %b) : state ; backward c\n"
      "b.grad@1 = sum_to_channels(%a) : state ; backward a\n";
  EXPECT_EQ(checkpointed("every-2", nodes), nodes);
}

TEST(Checkpoint, WhatIsMadeCheaplyFromStatesComesBackWhereItIsRead) {
  EXPECT_EQ(checkpointed("no-bn",
                         "%r = relu(x@0) : f32[2x4] activation ; forward r\n"
                         "%c = linear(%r, w@0) : f32[2x4] activation ; forward c\n"
                         "b.grad@1 = sum_to_channels(%c) : state ; backward c\n"
                         "w.grad@1 = linear_grad_weight(%c, %r) : state ; backward c\n"),
            "%r = relu(x@0) : f32[2x4] activation ; forward r\n"
            "%c = linear(%r, w@0) : f32[2x4] activation ; forward c\n"
            "b.grad@1 = sum_to_channels(%c) : state ; backward c\n"
            "%r.again = relu(x@0) : f32[2x4] activation ; recompute r\n"
            "w.grad@1 = linear_grad_weight(%c, %r.again) : state ; backward c\n");
}

TEST(CheckpointStrategies, AreParsedAndPrinted) {
  for (const char* name : {"none", "no-bn", "sqrt", "log", "chen", "every-1", "every-12", "residual-2", "residual-3*", "optimal",
                           "optimal:6700000", "greedy", "greedy:6700000"}) {
    EXPECT_EQ(to_string(parse_checkpoint_strategy(name)), name);
  }
  EXPECT_EQ(to_string(parse_checkpoint_strategy("greedy:6.7MB")), "greedy:6700000");
  EXPECT_EQ(parse_checkpoint_strategy("residual-2*"),
            (CheckpointStrategy{.kind = CheckpointStrategy::Kind::residual_star, .every = 2}));
  EXPECT_EQ(to_string(parse_checkpoint_strategy("optimal:6.7MB")), "optimal:6700000");
  for (const char* name : {"",           "all",          "optimal:",     "optimal:0",
                           "optimal:-1", "optimal:many", "Optimal",      "sqrt:1MB",
                           ":1MB",       "Sqrt",         "every",        "every-",
                           "every-0",    "every--1",     "every-2*",     "every-1.5",
                           "residual-*", "residual-",    "residual-2**", "residual-99999999999999999999",
                           "log ",       "greedy:",      "greedy-1",     "greedy:0",
                           "greedy:-1",  "greedy:many",  "greedy 5MB"}) {
    EXPECT_THROW(parse_checkpoint_strategy(name), UserError) << name;
  }
}

Program zoo_program(const std::string& name, std::int64_t image_size = 0) {
  const AcceptingBackend backend;
  const Program graph = fuse(frontend::build_zoo_model(name, {.batch = 4, .image_size = image_size}));
  return eliminate_dead_nodes(differentiate(choose_recipes(graph)), {.backend = backend});
}

const Section& micro(const Program& program) { return *program.find_section(SectionKind::micro); }

TEST(ForwardChain, FindsTheResidualBlocksOfANetwork) {
  const std::vector<std::pair<std::string, int>> models{{"small-cnn", 0},    {"vgg-16", 0},    {"wrn-10-1", 3},  {"wrn-28-2", 12},
                                                        {"preresnet-29", 9}, {"resnet-18", 8}, {"resnet-50", 16}};
  for (const auto& [name, blocks] : models) {
    const Program program = zoo_program(name, name.starts_with("resnet") || name == "vgg-16" ? 64 : 0);
    const ForwardPass forward = find_forward_pass(micro(program));
    const std::vector<Link> links = find_chain(micro(program), forward).links;
    EXPECT_EQ(std::count_if(links.begin(), links.end(), [](const Link& link) { return link.joins_branches; }), blocks) << name;
    std::size_t at = 0;
    for (const Link& link : links) {
      EXPECT_EQ(link.begin, at) << name;
      EXPECT_LT(link.begin, link.end) << name;
      at = link.end;
    }
    EXPECT_EQ(at, forward.end) << name;
  }
}

TEST(ForwardChain, ABlockEndsWithTheValueThatAloneCarriesOn) {
  const Program program = zoo_program("wrn-10-1");
  const Section& section = micro(program);
  for (const Link& link : find_chain(section, find_forward_pass(section)).links) {
    if (!link.joins_branches) continue;
    const Node& last = section.nodes[link.end - 1];
    EXPECT_EQ(last.op, &ops::add) << last.layer;
    EXPECT_EQ(link.carried, section.value(last.outputs[0]).type.bytes()) << last.layer;
  }
}

// What a strategy must never change, on networks with batch norm, branches, pooling and dropout.
class CheckpointedZoo : public ::testing::TestWithParam<std::string> {};

TEST_P(CheckpointedZoo, WritesEveryStateOnceAndClonesNodesAsTheyAre) {
  for (const char* name : {"small-cnn", "wrn-10-1", "preresnet-29", "resnet-18", "vgg-16"}) {
    const std::string model = name;
    if (GetParam().starts_with("residual") && (model == "small-cnn" || model == "vgg-16")) continue;
    const Program before = zoo_program(model, model == "resnet-18" || model == "vgg-16" ? 64 : 0);
    const AcceptingBackend backend;
    const Program after =
        checkpoint(before, {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy(GetParam())}});
    ASSERT_EQ(find_defect(after), std::nullopt) << model;
    std::map<std::string, int> writes;
    for (const Node& node : micro(before).nodes) {
      for (const ValueId id : node.outputs) writes[node.layer] += micro(before).value(id).is_state() ? 1 : 0;
    }
    int clones = 0;
    for (const Node& node : micro(after).nodes) {
      for (const ValueId id : node.outputs) writes[node.layer] -= micro(after).value(id).is_state() ? 1 : 0;
      if (node.phase != Phase::recompute) continue;
      ++clones;
      EXPECT_TRUE(node.op->may_recompute) << node.layer;
      EXPECT_TRUE(std::any_of(micro(before).nodes.begin(), micro(before).nodes.end(), [&](const Node& original) {
        return original.op == node.op && original.layer == node.layer && original.attributes == node.attributes &&
               original.phase == Phase::forward;
      })) << node.layer;
    }
    for (const auto& [layer, left] : writes) EXPECT_EQ(left, 0) << model << " " << layer;
    EXPECT_GT(clones, 0) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, CheckpointedZoo,
                         ::testing::Values("no-bn", "every-1", "every-3", "sqrt", "log", "chen", "residual-1", "residual-2",
                                           "residual-1*", "residual-2*", "optimal", "optimal:4MB", "greedy:100KB"),
                         [](const auto& instance) {
                           std::string name;
                           for (const char c : instance.param) name += c == '-' || c == ':' ? '_' : c == '*' ? 's' : c;
                           return name;
                         });

std::set<std::string_view> recomputed_ops(const Program& program) {
  std::set<std::string_view> ops;
  for (const Node& node : micro(program).nodes) {
    if (node.phase == Phase::recompute) ops.insert(node.op->name);
  }
  return ops;
}

TEST(Checkpoint, WithoutNormalizationOnlyThatIsMadeAgain) {
  const Program before = zoo_program("wrn-10-1");
  const AcceptingBackend backend;
  const Program after = checkpoint(before, {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy("no-bn")}});
  EXPECT_EQ(recomputed_ops(after), (std::set<std::string_view>{"batch_norm_apply", "image_input"}));
  // Nothing normalized is read by backward but what was made again.
  const ForwardPass forward = find_forward_pass(micro(after));
  for (std::size_t i = 0; i < forward.maker.size(); ++i) {
    if (!forward.read_by_backward[i]) continue;
    const Node& maker = micro(after).nodes[forward.maker[i].index()];
    EXPECT_NE(maker.op, &ops::batch_norm_apply) << maker.layer;
  }
}

TEST(Checkpoint, StatisticsStayAndAreNotMadeAgain) {
  const Program before = zoo_program("wrn-28-2");
  const AcceptingBackend backend;
  for (const char* strategy : {"sqrt", "log", "residual-2*"}) {
    const Program after =
        checkpoint(before, {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy(strategy)}});
    EXPECT_FALSE(recomputed_ops(after).contains("batch_norm_statistics")) << strategy;
    EXPECT_TRUE(recomputed_ops(after).contains("conv2d")) << strategy;
  }
}

TEST(Checkpoint, ResidualStrategiesNeedResidualBlocks) {
  const Program program = zoo_program("small-cnn");
  const AcceptingBackend backend;
  EXPECT_THROW(checkpoint(program, {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy("residual-1")}}),
               UserError);
  EXPECT_THROW(checkpoint(program, {.backend = backend, .methods = {.checkpoint = parse_checkpoint_strategy("residual-1*")}}),
               UserError);
}

}  // namespace
}  // namespace snug::testing
