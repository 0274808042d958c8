#include "passes/offload_activations.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"

namespace snug::testing {
namespace {

const std::string kHeader =
    "program test batch 32 microbatch 32\n"
    "state x : f32[32x64] input\n"
    "state w : f32[64x64] parameter trainable\n"
    "state dw : f32[64x64] gradient\n"
    "section micro\n";

// The nodes of a program of values of 8 KiB, offloaded.
std::string offloaded(const std::string& nodes) {
  const AcceptingBackend backend;
  Program program = parse_program(kHeader + nodes, ops::find);
  verify(program, "in the test's own text");
  program = offload_activations(std::move(program), {.backend = backend});
  verify(program, "after the pass");
  return nodes_of(program);
}

TEST(OffloadActivations, WhatWaitsForBackwardWaitsInHostMemory) {
  EXPECT_EQ(offloaded("%a = relu(x@0) : f32[32x64] activation ; forward a\n"
                      "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
                      "%c = relu(%b) : f32[32x64] activation ; forward c\n"
                      "%dc = add(%c, %c) : f32[32x64] activation_gradient ; backward c\n"
                      "%db = relu_grad(%dc, %c) : f32[32x64] activation_gradient ; backward c\n"
                      "dw@1 = linear_grad_weight(%db, %a) : state ; backward b\n"
                      "%da = relu_grad(%db, %a) : f32[32x64] activation_gradient ; backward a\n"),
            "%a = relu(x@0) : f32[32x64] activation ; forward a\n"
            "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
            "%a.host = copy_to_space(%a) {host=1} : f32[32x64] activation host ; forward a\n"
            "%c = relu(%b) : f32[32x64] activation ; forward c\n"
            "%dc = add(%c, %c) : f32[32x64] activation_gradient ; backward c\n"
            "%db = relu_grad(%dc, %c) : f32[32x64] activation_gradient ; backward c\n"
            "%a.back = copy_to_space(%a.host) {host=0} : f32[32x64] activation ; backward a\n"
            "dw@1 = linear_grad_weight(%db, %a.back) : state ; backward b\n"
            "%da = relu_grad(%db, %a.back) : f32[32x64] activation_gradient ; backward a\n");
}

TEST(OffloadActivations, AClonedForwardPassStartsFromWhatCameBack) {
  EXPECT_EQ(offloaded("%a = relu(x@0) : f32[32x64] activation ; forward a\n"
                      "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
                      "%c = linear(%b, w@0) : f32[32x64] activation ; forward c\n"
                      "%b.again = linear(%a, w@0) : f32[32x64] activation ; recompute b\n"
                      "dw@1 = linear_grad_weight(%b.again, %b.again) : state ; backward c\n"),
            "%a = relu(x@0) : f32[32x64] activation ; forward a\n"
            "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
            "%a.host = copy_to_space(%a) {host=1} : f32[32x64] activation host ; forward a\n"
            "%c = linear(%b, w@0) : f32[32x64] activation ; forward c\n"
            "%a.back = copy_to_space(%a.host) {host=0} : f32[32x64] activation ; backward a\n"
            "%b.again = linear(%a.back, w@0) : f32[32x64] activation ; recompute b\n"
            "dw@1 = linear_grad_weight(%b.again, %b.again) : state ; backward c\n");
}

TEST(OffloadActivations, SmallValuesStatesAndWhatForwardAloneReadsStay) {
  const std::string nodes =
      "%s = sum_to_channels(x@0) : f32[64] activation ; forward s\n"  // small, and read by backward
      "%a = relu(x@0) : f32[32x64] activation ; forward a\n"          // only read by forward
      "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
      "%db = relu_grad(%b, x@0) : f32[32x64] activation_gradient ; backward b\n"  // a state; %b has no time to wait
      "%ds = add(%s, %s) : f32[64] activation_gradient ; backward s\n";
  EXPECT_EQ(offloaded(nodes), nodes);
}

TEST(OffloadActivations, ValuesThatAreCalledLikeACopyKeepTheirNames) {
  const std::string text = offloaded(
      "%a.host = relu(x@0) : f32[32x64] activation ; forward a\n"
      "%a = relu(%a.host) : f32[32x64] activation ; forward a\n"
      "%b = linear(%a, w@0) : f32[32x64] activation ; forward b\n"
      "%c = relu(%b) : f32[32x64] activation ; forward c\n"
      "dw@1 = linear_grad_weight(%c, %a) : state ; backward b\n");
  EXPECT_NE(text.find("%a.host.2 = copy_to_space(%a) {host=1}"), std::string::npos) << text;
}

}  // namespace
}  // namespace snug::testing
