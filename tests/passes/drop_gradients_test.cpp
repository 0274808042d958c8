#include "passes/drop_gradients.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "support/messages.h"

namespace snug::testing {
namespace {

std::string program_with(const std::string& states, const std::string& micro, const std::string& update) {
  return "program test batch 4 microbatch 2\n"
         "state scalars : u8[64] scalar\n"
         "state metrics : f64[3] scalar\n"
         "state x : f32[2x4] input\n"
         "state w : f32[4x4] parameter trainable\n" +
         states + "section micro\n" + micro + "section update\n" + update;
}

const std::string kStates = "state w.grad : f32[4x4] gradient\nstate w.momentum : f32[4x4] optimizer momentum of w\n";
const std::string kForward = "  %y = linear(x@0, w@0) : f32[2x4] activation ; forward fc\n";
const std::string kGradient = "  %g = linear_grad_weight(%y, x@0) : f32[4x4] gradient ; backward fc\n";
const std::string kSecond = "  %h = linear_grad_weight(%y, x@0) : f32[4x4] gradient ; backward fc\n";

std::string sgd(const std::string& rule) {
  return "  w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0) " + rule +
         " : state, state, state ; update w\n";
}
const std::string kHeavyBall = "{momentum=0.9, nesterov=0, weight_decay=0.1}";

std::string dropped(const std::string& text) {
  const AcceptingBackend backend;
  Program program = parse_program(text, ops::find);
  verify(program, "in the test's own text");
  program = drop_gradients(std::move(program), {.backend = backend});
  verify(program, "after the pass");
  return print(program);
}

std::string refusal(const std::string& text) {
  return support::message_of<UserError>([&] { dropped(text); });
}

TEST(DropGradients, GradientsAreAddedToTheDecayedMomentumAndTheUpdateOnlySteps) {
  EXPECT_EQ(dropped(program_with(kStates,
                                 kForward + kGradient + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n" + kSecond +
                                     "  w.grad@2 = add(%h, w.grad@1) : state ; backward fc\n",
                                 sgd(kHeavyBall))),
            program_with("state w.momentum : f32[4x4] optimizer momentum of w\n",
                         kForward +
                             "  w.momentum@1 = momentum_decay(w.momentum@0, w@0, scalars@0) {momentum=0.9, weight_decay=0.1} : "
                             "state ; backward fc\n" +
                             kGradient + "  w.momentum@2 = add(w.momentum@1, %g) : state ; backward fc\n" + kSecond +
                             "  w.momentum@3 = add(w.momentum@2, %h) : state ; backward fc\n",
                         "  w@1 = momentum_step(w@0, scalars@0, w.momentum@0) : state ; update w\n"));
}

// In bfloat16s a microbatch's gradient may be less than half the distance to the momentum's neighbor.
TEST(DropGradients, AdditionsAreRoundedStochasticallyWhereTheUpdateIs) {
  const auto in_bfloats = [](std::string text) {
    for (std::size_t at = 0; (at = text.find("f32[", at)) != std::string::npos;) text.replace(at, 3, "bf16");
    return text;
  };
  const std::string rounding = "{key=7, momentum=0.9, nesterov=0, stochastic=1, weight_decay=0.1}";
  EXPECT_EQ(dropped(in_bfloats(program_with(kStates,
                                            kForward + kGradient + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n" +
                                                kSecond + "  w.grad@2 = add(%h, w.grad@1) : state ; backward fc\n",
                                            sgd(rounding)))),
            in_bfloats(program_with(
                "state w.momentum : f32[4x4] optimizer momentum of w\n",
                kForward +
                    "  w.momentum@1 = momentum_decay(w.momentum@0, w@0, scalars@0) {key=7, momentum=0.9, stochastic=1, "
                    "weight_decay=0.1} : state ; backward fc\n" +
                    kGradient +
                    "  w.momentum@2 = momentum_add(w.momentum@1, %g, scalars@0) {key=7, stochastic=1, summand=0} : state ; "
                    "backward fc\n" +
                    kSecond +
                    "  w.momentum@3 = momentum_add(w.momentum@2, %h, scalars@0) {key=7, stochastic=1, summand=1} : state ; "
                    "backward fc\n",
                "  w@1 = momentum_step(w@0, scalars@0, w.momentum@0) {key=7, stochastic=1} : state ; update w\n")));
}

TEST(DropGradients, WhatDoesNotGoTogetherIsRefusedByName) {
  const std::string micro = kForward + kGradient + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n";
  const std::string begin = "pass 'drop_gradients' adds gradients to the momentum, but ";
  EXPECT_TRUE(support::mentions(refusal(program_with(kStates, micro, sgd("{momentum=0.9, nesterov=1, weight_decay=0.1}"))),
                                {begin, "false", "--nesterov"}));
  EXPECT_TRUE(
      support::mentions(refusal(program_with(kStates, micro,
                                             "  %s = sum_of_squares(w.grad@0) : f64[1] scalar ; update w\n"
                                             "  %n = clip_factor(%s, scalars@0) : f64[2] scalar ; update w\n"
                                             "  w@1, w.grad@1, w.momentum@1 = sgd(w@0, w.grad@0, scalars@0, w.momentum@0, %n) " +
                                                 kHeavyBall + " : state, state, state ; update w\n")),
                        {begin, "clipping"}));
  EXPECT_TRUE(support::mentions(
      refusal(program_with("state w.grad : f32[4x4] gradient of w\n", micro,
                           "  w@1, w.grad@1 = sgd(w@0, w.grad@0, scalars@0) {momentum=0.0, nesterov=0, weight_decay=0.1} "
                           ": state, state ; update w\n")),
      {begin, "without a momentum"}));
  EXPECT_TRUE(support::mentions(
      refusal(program_with("state w.grad : f32[4x4] gradient\nstate c : u8[16] optimizer\nstate s : f32[1] optimizer\n", micro,
                           "  w@1, w.grad@1, c@1, s@1 = sgd_quantised(w@0, w.grad@0, scalars@0, c@0, s@0) " + kHeavyBall +
                               " : state, state, state, state ; update w\n")),
      {begin, "8 bits"}));
}

TEST(DropGradients, TheUpdateInBackwardDoesNotGoWithIt) {
  const AcceptingBackend backend;
  std::string text =
      program_with(kStates, kForward + kGradient + "  w.grad@1 = add(w.grad@0, %g) : state ; backward fc\n", sgd(kHeavyBall));
  text.replace(text.find("batch 4"), 7, "batch 2");
  std::vector<PassTiming> timings;
  try {
    run_passes(parse_program(text, ops::find), memory_passes(),
               {.backend = backend, .methods = {.drop_gradients = true, .fuse_update = true}}, {}, timings);
    ADD_FAILURE() << "it was taken";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(error.what(), {"'fuse_update'", "drop_gradients", "accumulators"}));
  }
}

}  // namespace
}  // namespace snug::testing
