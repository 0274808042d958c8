#include "autodiff/differentiate.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/zoo.h"
#include "graphs.h"
#include "ops/ops.h"
#include "support/messages.h"

namespace snug::testing {
namespace {

constexpr const char* kTwoLayers =
    "program model batch 6 microbatch 2\n"
    "state scalars : u8[64] scalar\n"
    "state metrics : f64[3] scalar\n"
    "state features : f32[2x3] input\n"
    "state a.weight : f32[4x3] parameter trainable\n"
    "state a.bias : f32[4] parameter trainable\n"
    "state head.weight : f32[5x4] parameter trainable\n"
    "state labels : i32[2] input\n"
    "state head.weight.grad : f32[5x4] gradient of head.weight\n"
    "state a.weight.grad : f32[4x3] gradient of a.weight\n"
    "state a.bias.grad : f32[4] gradient of a.bias\n"
    "section init\n"
    "  metrics@1 = fill(metrics@0) {value=0.0} : state ; init metrics\n"
    "  a.weight@1 = init_uniform(a.weight@0, scalars@0) {bound=0.5773502691896258, key=3} : state ; init a.weight\n"
    "  a.bias@1 = init_uniform(a.bias@0, scalars@0) {bound=0.5773502691896258, key=4} : state ; init a.bias\n"
    "  head.weight@1 = init_uniform(head.weight@0, scalars@0) {bound=0.5, key=5} : state ; init head.weight\n"
    "  head.weight.grad@1 = fill(head.weight.grad@0) {value=0.0} : state ; init head.weight.grad\n"
    "  a.weight.grad@1 = fill(a.weight.grad@0) {value=0.0} : state ; init a.weight.grad\n"
    "  a.bias.grad@1 = fill(a.bias.grad@0) {value=0.0} : state ; init a.bias.grad\n"
    "section micro\n"
    "  %a = linear(features@0, a.weight@0, a.bias@0) : f32[2x4] activation ; forward a\n"
    "  %r = relu(%a) : f32[2x4] activation ; forward r\n"
    "  %head = linear(%r, head.weight@0) : f32[2x5] activation ; forward head\n"
    "  %loss = softmax_cross_entropy(%head, labels@0, scalars@0) {label_smoothing=0.0} : f64[3] activation ; forward loss\n"
    "  metrics@1 = add(metrics@0, %loss) : state ; forward loss\n"
    "  %d.loss = softmax_cross_entropy_grad(%head, labels@0, scalars@0) {label_smoothing=0.0} : f32[2x5] activation_gradient ; "
    "backward loss\n"
    "  %d.head = linear_grad_weight(%d.loss, %r) : f32[5x4] gradient ; backward head\n"
    "  head.weight.grad@1 = add(head.weight.grad@0, %d.head) : state ; backward head\n"
    "  %d.head.2 = linear_grad_input(%d.loss, head.weight@0) : f32[2x4] activation_gradient ; backward head\n"
    "  %d.r = relu_grad(%d.head.2, %r) : f32[2x4] activation_gradient ; backward r\n"
    "  %d.a = linear_grad_weight(%d.r, features@0) : f32[4x3] gradient ; backward a\n"
    "  a.weight.grad@1 = add(a.weight.grad@0, %d.a) : state ; backward a\n"
    "  %d.a.2 = sum_to_channels(%d.r) : f32[4] gradient ; backward a\n"
    "  a.bias.grad@1 = add(a.bias.grad@0, %d.a.2) : state ; backward a\n"
    "section eval\n"
    "  %a = linear(features@0, a.weight@0, a.bias@0) : f32[2x4] activation ; forward a\n"
    "  %r = relu(%a) : f32[2x4] activation ; forward r\n"
    "  %head = linear(%r, head.weight@0) : f32[2x5] activation ; forward head\n"
    "  %loss = softmax_cross_entropy(%head, labels@0, scalars@0) {label_smoothing=0.0} : f64[3] activation ; forward loss\n"
    "  metrics@1 = add(metrics@0, %loss) : state ; forward loss\n";

Program two_layers() {
  return model_on_vectors([](GraphBuilder& b, ValueId x) { return b.relu("r", b.linear("a", x, 4)); });
}

TEST(Differentiate, AModelOfTwoLayersBecomesThisProgram) {
  const Program program = differentiate(two_layers(), 6);
  EXPECT_EQ(print(program), kTwoLayers);
}

TEST(Differentiate, AValueReadTwiceGetsTheSumOfItsReadersGradients) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    x = b.linear("a", x, 3, {.bias = false});
    return b.add("sum", x, b.relu("r", b.linear("b", x, 3, {.bias = false})));
  });
  EXPECT_EQ(backward_of(differentiate(graph)),
            "%d.loss = softmax_cross_entropy_grad(%head, labels@0, scalars@0) {label_smoothing=0.0} : f32[2x5] "
            "activation_gradient ; backward loss\n"
            "%d.head = linear_grad_weight(%d.loss, %sum) : f32[5x3] gradient ; backward head\n"
            "head.weight.grad@1 = add(head.weight.grad@0, %d.head) : state ; backward head\n"
            "%d.head.2 = linear_grad_input(%d.loss, head.weight@0) : f32[2x3] activation_gradient ; backward head\n"
            "%d.r = relu_grad(%d.head.2, %r) : f32[2x3] activation_gradient ; backward r\n"
            "%d.b = linear_grad_weight(%d.r, %a) : f32[3x3] gradient ; backward b\n"
            "b.weight.grad@1 = add(b.weight.grad@0, %d.b) : state ; backward b\n"
            "%d.b.2 = linear_grad_input(%d.r, b.weight@0) : f32[2x3] activation_gradient ; backward b\n"
            "%d.b.sum = add(%d.head.2, %d.b.2) : f32[2x3] activation_gradient ; backward b\n"
            "%d.a = linear_grad_weight(%d.b.sum, features@0) : f32[3x3] gradient ; backward a\n"
            "a.weight.grad@1 = add(a.weight.grad@0, %d.a) : state ; backward a\n");
}

TEST(Differentiate, AValueAddedToItselfGetsItsGradientTwice) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    x = b.linear("a", x, 3, {.bias = false});
    return b.add("twice", x, x);
  });
  EXPECT_TRUE(contains(backward_of(differentiate(graph)), "%d.twice.sum = add(%d.head.2, %d.head.2) :"));
}

TEST(Differentiate, ASharedParameterAccumulatesBothGradientsInOneState) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    const ValueId w = b.parameter("w", {.dtype = DType::f32, .shape = {3, 3}}, {});
    for (const char* name : {"first", "second"}) x = b.emit(name, ops::linear, {x, w}).front();
    return x;
  });
  const Program program = differentiate(graph);
  const std::string backward = backward_of(program);
  EXPECT_TRUE(contains(backward, "w.grad@1 = add(w.grad@0, %d.second) : state ; backward second\n"));
  EXPECT_TRUE(contains(backward, "w.grad@2 = add(w.grad@1, %d.first) : state ; backward first\n"));
}

// One node reads the parameter twice: both of its summands come from there, and the versions still follow each other.
TEST(Differentiate, AParameterThatANodeReadsTwiceAccumulatesInOrder) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    const ValueId w = b.parameter("w", {.dtype = DType::f32, .shape = {3, 3}}, {});
    const ValueId square = b.emit("square", ops::linear, {w, w}).front();
    return b.emit("apply", ops::linear, {x, square}).front();
  });
  EXPECT_TRUE(contains(backward_of(differentiate(graph)), "w.grad@2 = add(w.grad@1, "));
}

TEST(Differentiate, ParametersThatTheLossDoesNotDependOnGetNoGradient) {
  const Program graph = model_on_vectors([](GraphBuilder& b, ValueId x) {
    b.linear("unused", x, 7);
    return x;
  });
  const Program program = differentiate(graph);
  EXPECT_TRUE(program.find_state("unused.weight").valid());
  EXPECT_FALSE(program.find_state("unused.weight.grad").valid());
  EXPECT_FALSE(program.find_state("unused.weight.momentum").valid());
  EXPECT_FALSE(contains(backward_of(program), "unused"));
  // It still begins with its initial values: a snapshot may be taken of it.
  EXPECT_TRUE(contains(nodes_of(program, SectionKind::init, Phase::init), "unused.weight@1 = init_uniform("));
}

TEST(Differentiate, StagingAndScalarsComeFromOutsideAndEverythingElseIsInitialized) {
  const Program program = differentiate(frontend::build_zoo_model("wrn-10-1", {.batch = 2}));
  const std::string init = nodes_of(program, SectionKind::init, Phase::init);
  for (const State& state : program.states) {
    const bool from_outside = state.role == Role::input || state.name == "scalars";
    EXPECT_EQ(contains(init, state.name + "@1 = "), !from_outside) << state.name;
  }
}

TEST(Differentiate, RandomInitialValuesAreKeyedByTheStatesNumber) {
  const Program program = differentiate(two_layers());
  for (const Node& node : program.find_section(SectionKind::init)->nodes) {
    if (node.op != &ops::init_uniform) continue;
    EXPECT_EQ(node.attributes.integer("key"), static_cast<std::int64_t>(program.find_state(node.layer).index()));
  }
}

TEST(Differentiate, ABatchIsNoSmallerThanItsMicrobatch) {
  try {
    differentiate(two_layers(), 1);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(error.what(), {"1", "smaller", "2"}));
  }
  EXPECT_EQ(differentiate(two_layers(), 7).batch, 7);  // a last partial microbatch is fine
  EXPECT_EQ(differentiate(two_layers()).batch, 2);
}

TEST(Differentiate, RecipesMustBeOnesThatTheNodesHave) {
  const Program graph = two_layers();
  EXPECT_THROW(differentiate(recipes_with(graph, "relu", 2)), InternalError);
  EXPECT_THROW(differentiate(recipes_with(graph, "relu", -1)), InternalError);
}

}  // namespace
}  // namespace snug::testing
