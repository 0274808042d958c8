#include "passes/fuse_update.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "support/messages.h"

namespace snug::testing {
namespace {

const std::string kRule = "{momentum=0.9, nesterov=1, weight_decay=0.1}";

std::string program_with(const std::string& header, const std::string& states, const std::string& init, const std::string& micro,
                         const std::string& update) {
  return "program test " + header +
         "\n"
         "state scalars : u8[64] scalar\n"
         "state metrics : f64[3] scalar\n"
         "state x : f32[2x4] input\n"
         "state w : f32[4x4] parameter trainable\n" +
         states + "state w.momentum : f32[4x4] optimizer momentum of w\nsection init\n" + init + "section micro\n" + micro +
         "section update\n" + update;
}

const std::string kAccumulator = "state w.grad : f32[4x4] gradient of w\n";
const std::string kInit = "  w@1 = fill(w@0) {value=1.0} : state ; init w\n";
const std::string kInitAccumulator = "  w.grad@1 = fill(w.grad@0) {value=0.0} : state ; init w.grad\n";
const std::string kInitMomentum = "  w.momentum@1 = fill(w.momentum@0) {value=0.0} : state ; init w.momentum\n";
const std::string kForward =
    "  %y = linear(x@0, w@0) : f32[2x4] activation ; forward fc\n"
    "  metrics@1 = add(metrics@0, metrics@0) : state ; forward loss\n";
const std::string kUpdate = "  w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0) " + kRule +
                            " : state, state, state ; update w\n";
const std::string kGuard = "  %update_guard = finite_factor(metrics@1) : f64[2] scalar ; update loss\n";

std::string gradient(const std::string& name) {
  return "  %" + name + " = linear_grad_weight(%y, x@0) : f32[4x4] gradient ; backward fc\n";
}

std::string fused_update(const std::string& of) {
  return "  w@1, %w.gradient, w.momentum@1 = sgd(w@0, %" + of + ", scalars@0, w.momentum@0, %update_guard) " + kRule +
         " : state, f32[4x4] gradient, state ; update w\n";
}

std::string unfused(const std::string& backward, const std::string& header = "batch 2 microbatch 2") {
  return program_with(header, kAccumulator, kInit + kInitAccumulator + kInitMomentum, kForward + backward, kUpdate);
}

std::string fused(const std::string& text) {
  const AcceptingBackend backend;
  Program program = parse_program(text, ops::find);
  verify(program, "in the test's own text");
  program = fuse_update(std::move(program), {.backend = backend});
  verify(program, "after the pass");
  return print(program);
}

std::string refusal(const std::string& text) {
  return support::message_of<UserError>([&] { fused(text); });
}

TEST(FuseUpdate, TheUpdateFollowsTheLastReaderOfTheOldWeightAndTheAccumulatorIsGone) {
  const std::string reader = "  %dx = linear_grad_input(%y, w@0) : f32[2x4] activation_gradient ; backward fc\n";
  const std::string later = "  %z = relu(%dx) : f32[2x4] activation_gradient ; backward other\n";
  EXPECT_EQ(fused(unfused(gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n" + reader + later)),
            program_with("batch 2 microbatch 2", "", kInit + kInitMomentum,
                         kForward + gradient("g") + reader + kGuard + fused_update("g") + later, ""));
}

// As where one node makes the loss and the classifier's gradient: whether the loss is finite is not known yet.
TEST(FuseUpdate, AGradientMadeBeforeTheLossIsAddedUpWaitsForIt) {
  const std::string loss = "  metrics@1 = add(metrics@0, metrics@0) : state ; forward loss\n";
  const std::string layer = kForward.substr(0, kForward.find("  metrics@1"));
  const std::string later = "  %z = relu(%y) : f32[2x4] activation_gradient ; backward other\n";
  const std::string accumulation = "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n";
  EXPECT_EQ(fused(program_with("batch 2 microbatch 2", kAccumulator, kInit + kInitAccumulator + kInitMomentum,
                               layer + gradient("g") + accumulation + loss + later, kUpdate)),
            program_with("batch 2 microbatch 2", "", kInit + kInitMomentum,
                         layer + gradient("g") + loss + kGuard + fused_update("g") + later, ""));
}

TEST(FuseUpdate, ARecomputationThatReadsTheWeightComesBeforeTheUpdate) {
  const std::string again = "  %y.again = linear(x@0, w@0) : f32[2x4] activation ; recompute fc\n";
  EXPECT_EQ(fused(unfused(gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n" + again)),
            program_with("batch 2 microbatch 2", "", kInit + kInitMomentum,
                         kForward + gradient("g") + again + kGuard + fused_update("g"), ""));
}

TEST(FuseUpdate, GradientsOfATiedWeightAreAddedUpFirst) {
  EXPECT_EQ(fused(unfused(gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n" + gradient("h") +
                          "  w.grad@2 = add(%h, w.grad@1) : state ; backward fc\n")),
            program_with("batch 2 microbatch 2", "", kInit + kInitMomentum,
                         kForward + gradient("g") + gradient("h") +
                             "  %w.grad = add(%g, %h) : f32[4x4] gradient ; backward fc\n" + kGuard + fused_update("w.grad"),
                         ""));
}

TEST(FuseUpdate, SeveralMicrobatchesAreRefused) {
  EXPECT_TRUE(support::mentions(
      refusal(unfused(gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n", "batch 5 microbatch 2")),
      {"'fuse_update'", "3 microbatches", "microbatch of 5"}));
}

TEST(FuseUpdate, ClippingIsRefused) {
  const std::string clipped =
      "  %s = sum_of_squares(w.grad@0) : f64[1] scalar ; update w\n"
      "  %n = clip_factor(%s, scalars@0) : f64[2] scalar ; update w\n"
      "  w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0, %n) " +
      kRule + " : state, state, state ; update w\n";
  EXPECT_TRUE(support::mentions(
      refusal(program_with("batch 2 microbatch 2", kAccumulator, kInit,
                           kForward + gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n", clipped)),
      {"'fuse_update'", "clipping"}));
}

TEST(FuseUpdate, ALossScaleThatFollowsTheGradientsIsRefused) {
  const std::string guarded =
      "  %s = sum_of_squares(w.grad@0) : f64[1] scalar ; update w\n"
      "  %n = clip_factor(%s, scalars@0) {finds_overflow=1} : f64[2] scalar ; update w\n"
      "  w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0, %n) " +
      kRule + " : state, state, state ; update w\n";
  EXPECT_TRUE(support::mentions(
      refusal(program_with("batch 2 microbatch 2", kAccumulator, kInit,
                           kForward + gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n", guarded)),
      {"'fuse_update'", "loss scaling", "fp32"}));
}

TEST(FuseUpdate, WithoutParametersToTrainNothingChanges) {
  const std::string text = program_with("batch 2 microbatch 2", "", kInit, kForward, "");
  EXPECT_EQ(fused(text), text);
}

TEST(FuseUpdate, RunsOnlyWhenItIsAskedForAndBeforeSumsMove) {
  const AcceptingBackend backend;
  const std::string text = unfused(gradient("g") + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n");
  const auto has_accumulator = [&](const Methods& methods) {
    std::vector<PassTiming> timings;
    return run_passes(parse_program(text, ops::find), memory_passes(), {.backend = backend, .methods = methods}, {}, timings)
        .find_state("w.grad")
        .valid();
  };
  EXPECT_TRUE(has_accumulator({}));
  EXPECT_FALSE(has_accumulator({.fuse_update = true}));
}

}  // namespace
}  // namespace snug::testing
