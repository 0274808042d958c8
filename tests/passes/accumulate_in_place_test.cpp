#include "passes/accumulate_in_place.h"

#include <gtest/gtest.h>

#include "before_after.h"

namespace snug::testing {
namespace {

const std::string kWeightGradient =
    "%y = relu(x@0) : f32[2x4] activation ; forward y\n"
    "%dw = linear_grad_weight(%y, x@0) : f32[4x4] gradient ; backward w\n"
    "w.grad@1 = add(w.grad@0, %dw) : state ; backward w\n";

TEST(AccumulateInPlace, TheMakerAddsToTheState) {
  EXPECT_EQ(after(accumulate_in_place, kWeightGradient),
            "%y = relu(x@0) : f32[2x4] activation ; forward y\n"
            "w.grad@1 = linear_grad_weight(%y, x@0, w.grad@0) {accumulate=1} : state ; backward w\n");
}

TEST(AccumulateInPlace, TheMakerAddsToAValue) {
  EXPECT_EQ(after(accumulate_in_place,
                  "%a = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward a\n"
                  "%b = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward b\n"
                  "%sum = add(%a, %b) : f32[2x4] activation_gradient ; backward b\n"
                  "b@1 = sum_to_channels(%sum) : state ; update\n"),
            "%a = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward a\n"
            "%sum = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward b\n"
            "b@1 = sum_to_channels(%sum) : state ; update\n");
}

TEST(AccumulateInPlace, EitherOperandMayBeTheSum) {
  EXPECT_EQ(after(accumulate_in_place,
                  "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
                  "w.grad@1 = add(%dw, w.grad@0) : state ; backward w\n"),
            "w.grad@1 = linear_grad_weight(x@0, x@0, w.grad@0) {accumulate=1} : state ; backward w\n");
}

TEST(AccumulateInPlace, SeveralSummandsOfOneStateFollowEachOther) {
  EXPECT_EQ(after(accumulate_in_place,
                  "%d1 = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
                  "w.grad@1 = add(w.grad@0, %d1) : state ; backward w\n"
                  "%d2 = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
                  "w.grad@2 = add(w.grad@1, %d2) : state ; backward w\n"),
            "w.grad@1 = linear_grad_weight(x@0, x@0, w.grad@0) {accumulate=1} : state ; backward w\n"
            "w.grad@2 = linear_grad_weight(x@0, x@0, w.grad@1) {accumulate=1} : state ; backward w\n");
}

TEST(AccumulateInPlace, AnotherKernelThanTheSummandsOwnIsNotTaken) {
  AcceptingBackend backend({.refuses_accumulation = {"linear_grad_weight"}});
  // A second, less preferred kernel that would accumulate: it would give other bits, and more slowly.
  static constexpr KernelDef kSlow{.name = "slow_linear_grad_weight",
                                   .op = "linear_grad_weight",
                                   .match = [](const KernelQuery&) -> KernelMatch { return Accept{}; }};
  backend.kernels.push_back(&kSlow);
  EXPECT_EQ(nodes_of(accumulate_in_place(program_of(kWeightGradient), {.backend = backend})), kWeightGradient);
}

TEST(AccumulateInPlace, WhatTheBackendRefusesStaysAnAdd) {
  EXPECT_EQ(after(accumulate_in_place, kWeightGradient, {.refuses_accumulation = {"linear_grad_weight"}}), kWeightGradient);
  EXPECT_EQ(after(accumulate_in_place, kWeightGradient, {.missing = {"linear_grad_weight"}}), kWeightGradient);
}

TEST(AccumulateInPlace, AnOpThatCannotAccumulateStaysAnAdd) {
  const std::string nodes =
      "%y = relu(x@0) : f32[2x4] activation ; forward y\n"
      "%z = relu(x@0) : f32[2x4] activation ; forward z\n"
      "%s = add(%y, %z) : f32[2x4] activation ; forward s\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

TEST(AccumulateInPlace, ASummandThatSomethingElseReadsStaysAValue) {
  const std::string nodes =
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "w.grad@1 = add(w.grad@0, %dw) : state ; backward w\n"
      "b@1 = sum_to_channels(%dw) : state ; update\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

TEST(AccumulateInPlace, ASummandAddedToItselfStaysAValue) {
  const std::string nodes =
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "w.grad@1 = add(%dw, %dw) : state ; backward w\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

TEST(AccumulateInPlace, ASumThatIsMadeAfterTheSummandWaits) {
  const std::string nodes =
      "%a = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward a\n"
      "%r = relu(x@0) : f32[2x4] activation_gradient ; backward r\n"
      "%s = add(%r, %a) : f32[2x4] activation_gradient ; backward a\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

TEST(AccumulateInPlace, OtherLayoutsStayApart) {
  const std::string nodes =
      "%g = global_avg_pool_grad(x@0) {input_shape=[2,4,3,3]} : f32[2x4x3x3]/channels_last activation_gradient ; backward g\n"
      "%h = global_avg_pool_grad(x@0) {input_shape=[2,4,3,3]} : f32[2x4x3x3] activation_gradient ; backward h\n"
      "%s = add(%g, %h) : f32[2x4x3x3]/channels_last activation_gradient ; backward s\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

// The sum would be written where the summand is made: before somebody else reads the old version.
TEST(AccumulateInPlace, AStateThatIsReadInBetweenIsNotWrittenEarlier) {
  const std::string read_between =
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "%y = linear(x@0, w.grad@0) : f32[2x4] activation ; forward y\n"
      "w.grad@1 = add(w.grad@0, %dw) : state ; backward w\n";
  EXPECT_EQ(after(accumulate_in_place, read_between), read_between);
  const std::string target_read_between =
      "%a = relu(w@0) : f32[4x4] activation ; forward a\n"
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "%y = linear(x@0, w.grad@0) : f32[2x4] activation ; forward y\n"
      "w.grad@1 = add(%a, %dw) : state ; backward w\n";
  EXPECT_EQ(after(accumulate_in_place, target_read_between), target_read_between);
  const std::string other_state =
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "%y = linear(x@0, w.grad@0) : f32[2x4] activation ; forward y\n"
      "w.grad@1 = add(w@0, %dw) : state ; backward w\n";
  EXPECT_EQ(after(accumulate_in_place, other_state), other_state);
}

TEST(AccumulateInPlace, AStateThatIsWrittenInBetweenIsNotReadEarlier) {
  const std::string nodes =
      "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
      "w@1 = fill(w@0) {value=1.0} : state ; update w\n"
      "w.grad@1 = add(w@1, %dw) : state ; backward w\n";
  EXPECT_EQ(after(accumulate_in_place, nodes), nodes);
}

TEST(AccumulateInPlace, AKernelAddsToOneValueOnly) {
  const std::string first =
      "%c = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward c\n"
      "%a = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward a\n";
  const std::string last = "%t = add(%c, %s) : f32[2x4] activation_gradient ; backward t\n";
  EXPECT_EQ(after(accumulate_in_place, first +
                                           "%b = linear_grad_input(x@0, w@0) : f32[2x4] activation_gradient ; backward b\n"
                                           "%s = add(%a, %b) : f32[2x4] activation_gradient ; backward s\n" +
                                           last),
            first + "%s = linear_grad_input(x@0, w@0, %a) {accumulate=1} : f32[2x4] activation_gradient ; backward b\n" + last);
}

// Writing one state from another is no accumulation in place: the maker would have to read w and write w.grad.
TEST(AccumulateInPlace, ASumMayComeFromAnotherState) {
  EXPECT_EQ(after(accumulate_in_place,
                  "%dw = linear_grad_weight(x@0, x@0) : f32[4x4] gradient ; backward w\n"
                  "w.grad@1 = add(w@0, %dw) : state ; backward w\n"),
            "w.grad@1 = linear_grad_weight(x@0, x@0, w@0) {accumulate=1} : state ; backward w\n");
}

}  // namespace
}  // namespace snug::testing
