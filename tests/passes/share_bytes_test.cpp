#include "passes/share_bytes.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "before_after.h"

namespace snug::testing {
namespace {

std::string shared(std::string_view nodes) { return after(share_bytes, nodes); }

const std::string kA = "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n";

TEST(ShareBytes, AnOutputTakesTheBytesOfAnInputThatDies) {
  EXPECT_EQ(
      shared(kA + "%r = relu(%a) : f32[2x4] activation ; forward r\n%s = relu(%r) : f32[2x4] activation ; forward s\n"),
      kA + "%r = relu(%a) : f32[2x4] activation in %a ; forward r\n%s = relu(%r) : f32[2x4] activation in %r ; forward s\n");
}

TEST(ShareBytes, ValueWithTwoReadersIsNotReusedInPlace) {
  EXPECT_EQ(shared(kA + "%r = relu(%a) : f32[2x4] activation ; forward r\n%s = relu(%a) : f32[2x4] activation ; forward s\n"),
            kA + "%r = relu(%a) : f32[2x4] activation ; forward r\n%s = relu(%a) : f32[2x4] activation in %a ; forward s\n");
}

TEST(ShareBytes, OpWithoutPromiseTakesNothing) {
  const std::string nodes = kA + "%r = linear(%a, w@0) : f32[2x4] activation ; forward r\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, TheSecondOperandIsTakenWhenTheFirstLivesOn) {
  const std::string nodes = kA + "%r = linear(x@0, w@0) : f32[2x4] activation ; forward r\n";
  EXPECT_EQ(shared(nodes + "%s = add(%a, %r) : f32[2x4] activation ; forward s\nb@1 = sum_to_channels(%a) : state ; update\n"),
            nodes + "%s = add(%a, %r) : f32[2x4] activation in %r ; forward s\nb@1 = sum_to_channels(%a) : state ; update\n");
}

TEST(ShareBytes, OneValueInBothOperandsIsTakenWhenBothAreReadInStep) {
  EXPECT_EQ(shared(kA + "%s = add(%a, %a) : f32[2x4] activation ; forward s\n"),
            kA + "%s = add(%a, %a) : f32[2x4] activation in %a ; forward s\n");
}

TEST(ShareBytes, AnAccumulatorIsAddedToInItsOwnBytes) {
  EXPECT_EQ(shared(kA + "%s = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward s\n"),
            kA + "%s = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient in %a ; backward s\n");
  const std::string read_later = "b@1 = sum_to_channels(%a) : state ; update\n";
  EXPECT_EQ(
      shared(kA + "%s = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward s\n" +
             read_later),
      kA + "%s = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward s\n" + read_later);
}

// linear reads its input more than once, so the output must not lie where the accumulator and the input are one.
TEST(ShareBytes, BytesThatTheNodeReadsOutOfStepAreNotTaken) {
  const std::string nodes =
      kA + "%s = linear_grad_input(%a, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward s\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, AViewAlwaysLiesInItsInput) {
  EXPECT_EQ(
      shared(kA + "%v = reshape(%a) {shape=[8]} : f32[8] activation ; forward v\nb@1 = sum_to_channels(%a) : state ; update\n"
                  "%u = relu(%v) : f32[8] activation ; forward u\n"),
      kA + "%v = reshape(%a) {shape=[8]} : f32[8] activation in %a ; forward v\nb@1 = sum_to_channels(%a) : state ; update\n"
           "%u = relu(%v) : f32[8] activation in %v ; forward u\n");
}

TEST(ShareBytes, AValueIsNotTakenWhileAViewOfItIsRead) {
  EXPECT_EQ(shared(kA + "%v = reshape(%a) {shape=[2,4]} : f32[2x4] activation ; forward v\n"
                        "%r = relu(%a) : f32[2x4] activation ; forward r\n"
                        "b@1 = sum_to_channels(%v) : state ; update\n"),
            kA + "%v = reshape(%a) {shape=[2,4]} : f32[2x4] activation in %a ; forward v\n"
                 "%r = relu(%a) : f32[2x4] activation ; forward r\n"
                 "b@1 = sum_to_channels(%v) : state ; update\n");
}

TEST(ShareBytes, AViewIsNotTakenWhileItsValueIsRead) {
  EXPECT_EQ(shared(kA + "%v = reshape(%a) {shape=[2,4]} : f32[2x4] activation ; forward v\n"
                        "%r = relu(%v) : f32[2x4] activation ; forward r\n"
                        "b@1 = sum_to_channels(%a) : state ; update\n"),
            kA + "%v = reshape(%a) {shape=[2,4]} : f32[2x4] activation in %a ; forward v\n"
                 "%r = relu(%v) : f32[2x4] activation ; forward r\n"
                 "b@1 = sum_to_channels(%a) : state ; update\n");
}

// An op that could make either of its outputs in its input, but not both: no real op is like that yet.
std::vector<Type> infer_pair(const OpCall& call) { return {call.inputs[0], call.inputs[0]}; }
constexpr std::array<InPlacePromise, 2> kBothInFirst{{{0, 0}, {1, 0}}};
constexpr OpDef kPair{.name = "pair", .infer = infer_pair, .in_place = kBothInFirst};

TEST(ShareBytes, TwoOutputsDoNotLieInTheSameBytes) {
  Program program =
      parse_program(std::string(kStates) + kA + "%b, %c = pair(%a) : f32[2x4] activation, f32[2x4] activation ; forward\n",
                    [](std::string_view name) { return name == "pair" ? &kPair : ops::find(name); });
  const AcceptingBackend backend;
  program = share_bytes(std::move(program), {.backend = backend});
  EXPECT_EQ(nodes_of(program), kA + "%b, %c = pair(%a) : f32[2x4] activation in %a, f32[2x4] activation ; forward\n");
  EXPECT_EQ(find_defect(program), std::nullopt);
}

TEST(ShareBytes, EachOutputTakesAnInputOfItsOwn) {
  // Two operands in the same bytes are not read in step.
  const std::string nodes =
      "%a = relu(x@0) : f32[2x4] activation ; forward a\n"
      "%v = reshape(%a) {shape=[2,4]} : f32[2x4] activation in %a ; forward v\n";
  const std::string sgd =
      "%p, %q = sgd(%a, %v, scalars@0) {momentum=0.0, nesterov=0, weight_decay=0.0} : f32[2x4] activation, f32[2x4] activation ; "
      "update\n";
  EXPECT_EQ(shared(nodes + sgd), nodes + sgd);
  EXPECT_EQ(shared("%a = relu(x@0) : f32[2x4] activation ; forward a\n%v = relu(x@0) : f32[2x4] activation ; forward v\n" + sgd),
            "%a = relu(x@0) : f32[2x4] activation ; forward a\n%v = relu(x@0) : f32[2x4] activation ; forward v\n"
            "%p, %q = sgd(%a, %v, scalars@0) {momentum=0.0, nesterov=0, weight_decay=0.0} : f32[2x4] activation in %a, f32[2x4] "
            "activation in %v ; update\n");
}

TEST(ShareBytes, BytesOfAStateAreNeverTaken) {
  const std::string nodes =
      "%r = relu(x@0) : f32[2x4] activation ; forward r\n%v = reshape(x@0) {shape=[8]} : f32[8] activation ; forward v\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, AStateTakesNoOtherBytes) {
  const std::string nodes = "%a = relu(w@0) : f32[4x4] activation ; forward a\nw@1 = relu(%a) : state ; update w\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, AnotherLayoutIsNotReadInStep) {
  const std::string nodes =
      "%g = global_avg_pool_grad(x@0) {input_shape=[2,4,3,3]} : f32[2x4x3x3]/channels_last activation ; backward g\n"
      "%h = relayout(%g) {channels_last=0} : f32[2x4x3x3] activation ; backward h\n";
  const std::string sum = "%s = add(%g, %h) : f32[2x4x3x3]/channels_last activation ; backward s\n";
  const std::string later = "b@1 = sum_to_channels(%g) : state ; update\n";
  EXPECT_EQ(shared(nodes + sum + later), nodes + sum + later);
}

TEST(ShareBytes, ASmallerValueDoesNotTakeLargerBytes) {
  // Twelve bytes would keep 32 alive.
  const std::string nodes = kA + "%r = relu(%a) : f32[2x4]/opaque(small,12) activation ; forward r\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, HostAndDeviceBytesStayApart) {
  const std::string nodes =
      "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n"
      "%h = copy_to_space(%a) {host=1} : f32[2x4] activation host ; forward a\n"
      "%b = copy_to_space(%h) {host=0} : f32[2x4] activation ; forward a\n";
  EXPECT_EQ(shared(nodes), nodes);
}

TEST(ShareBytes, ACopyToWhereItLiesIsTheValueItself) {
  const std::string nodes =
      "%a = linear(x@0, w@0) : f32[2x4] activation ; forward a\n"
      "%b = copy_to_space(%a) {host=0} : f32[2x4] activation";
  EXPECT_EQ(shared(nodes + " ; forward a\n"), nodes + " in %a ; forward a\n");
}

}  // namespace
}  // namespace snug::testing
