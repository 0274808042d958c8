// The update of a program that clips.
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "graphs.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace snug::testing {
namespace {

Graph two_layers() {
  return model_on_vectors([](GraphBuilder& b, ValueId x) { return b.relu("r", b.linear("a", x, 4)); });
}

TEST(LowerClipping, MeasuresAllGradientsBeforeTheFirstUpdate) {
  const Program program = lower(two_layers(), {.sgd = {.momentum = 0, .weight_decay = 0, .nesterov = false, .clip_norm = 2}});
  EXPECT_EQ(nodes_of(program, SectionKind::update, Phase::update),
            "%a.weight.squares = sum_of_squares(a.weight.grad@0) : f64[1] scalar ; update a.weight\n"
            "%a.bias.squares = sum_of_squares(a.bias.grad@0, %a.weight.squares) : f64[1] scalar ; update a.bias\n"
            "%head.weight.squares = sum_of_squares(head.weight.grad@0, %a.bias.squares) : f64[1] scalar ; update head.weight\n"
            "gradient_norm@1 = clip_factor(%head.weight.squares, scalars@0) : state ; update gradient_norm\n"
            "a.weight@1, a.weight.grad@1 = sgd(a.weight@0, a.weight.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update a.weight\n"
            "a.bias@1, a.bias.grad@1 = sgd(a.bias@0, a.bias.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update a.bias\n"
            "head.weight@1, head.weight.grad@1 = sgd(head.weight@0, head.weight.grad@0, scalars@0, gradient_norm@1) "
            "{momentum=0.0, nesterov=0, weight_decay=0.0} : state, state ; update head.weight\n");
  EXPECT_EQ(to_string(program.state(program.find_state("gradient_norm")).type), "f64[2]");
}

TEST(LowerClipping, OverflowsAreFoundByTheSameNodes) {
  const auto text = [](const SgdOptions& sgd) { return print(lower(two_layers(), {.sgd = sgd})); };
  std::string found = text({.finds_overflow = true});
  const std::string mark = " {finds_overflow=1}";
  ASSERT_TRUE(contains(found, mark));
  EXPECT_EQ(found, text({.clip_norm = 2, .finds_overflow = true}));
  EXPECT_EQ(found.erase(found.find(mark), mark.size()), text({.clip_norm = 2}));
}

TEST(LowerClipping, ReadsBackFromText) {
  const Program program = lower(two_layers(), {.sgd = {.clip_norm = 2}});
  EXPECT_EQ(print(parse_program(print(program), ops::find)), print(program));
}

TEST(LowerClipping, TheNumberItselfIsNoPartOfTheProgram) {
  const auto text = [](double clip_norm) { return print(lower(two_layers(), {.sgd = {.clip_norm = clip_norm}})); };
  EXPECT_EQ(text(2), text(0.5));
  EXPECT_EQ(text(2), text(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(contains(text(0), "gradient_norm"));
}

TEST(LowerClipping, FrozenParametersDoNotCount) {
  Graph graph = two_layers();
  frontend::freeze(graph, {"a"});
  EXPECT_EQ(ops_of(lower(graph, {.sgd = {.clip_norm = 1}}), SectionKind::update, Phase::update),
            "sum_of_squares clip_factor sgd ");
  frontend::freeze(graph, {"head"});
  const Program nothing = lower(graph, {.sgd = {.clip_norm = 1}});
  EXPECT_TRUE(nothing.find_section(SectionKind::update)->nodes.empty());
  EXPECT_FALSE(nothing.find_state("gradient_norm").valid());
}

TEST(LowerClipping, ImpossibleNormsAreRefused) {
  EXPECT_THROW(lower(two_layers(), {.sgd = {.clip_norm = -1}}), UserError);
  EXPECT_THROW(lower(two_layers(), {.sgd = {.clip_norm = std::numeric_limits<double>::quiet_NaN()}}), UserError);
}

}  // namespace
}  // namespace snug::testing
