#include "passes/select_kernels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"

namespace snug::testing {
namespace {

const std::string kNodes =
    "%y = linear(x@0, w@0, b@0) : f32[2x4] activation ; forward y\n"
    "w.grad@1 = linear_grad_weight(%y, x@0, w.grad@0) {accumulate=1} : state ; backward y\n";

TEST(SelectKernels, GivesEveryNodeItsKernelAndBooksItsWorkspace) {
  EXPECT_EQ(
      after(select_kernels, kNodes, {.workspace = {{"linear", Bytes(4096)}, {"linear_grad_weight", Bytes(1)}}}),
      "%y = linear(x@0, w@0, b@0) : f32[2x4] activation using accepting_linear workspace %y.workspace u8[4096] ; forward y\n"
      "w.grad@1 = linear_grad_weight(%y, x@0, w.grad@0) {accumulate=1} : state using accepting_linear_grad_weight "
      "workspace %w.grad.1.workspace u8[1] ; backward y\n");
}

TEST(SelectKernels, ANodeWithoutWorkspaceBooksNone) {
  EXPECT_EQ(after(select_kernels, kNodes),
            "%y = linear(x@0, w@0, b@0) : f32[2x4] activation using accepting_linear ; forward y\n"
            "w.grad@1 = linear_grad_weight(%y, x@0, w.grad@0) {accumulate=1} : state using accepting_linear_grad_weight ; "
            "backward y\n");
}

TEST(SelectKernels, AWorkspaceGetsANameThatNothingElseHas) {
  const std::string nodes =
      "%y.workspace = relu(x@0) : f32[2x4] activation ; forward y.workspace\n"
      "%y = relu(%y.workspace) : f32[2x4] activation ; forward y\n"
      "%w.grad.1 = relu(x@0) : f32[2x4] activation ; forward w.grad.1\n"
      "w.grad@1 = relu(w.grad@0) : state ; forward z\n";
  EXPECT_EQ(
      after(select_kernels, nodes, {.workspace = {{"relu", Bytes(8)}}}),
      "%y.workspace = relu(x@0) : f32[2x4] activation using accepting_relu workspace %y.workspace.workspace u8[8] ; forward "
      "y.workspace\n"
      "%y = relu(%y.workspace) : f32[2x4] activation using accepting_relu workspace %y.workspace.2 u8[8] ; forward y\n"
      "%w.grad.1 = relu(x@0) : f32[2x4] activation using accepting_relu workspace %w.grad.1.workspace u8[8] ; forward w.grad.1\n"
      "w.grad@1 = relu(w.grad@0) : state using accepting_relu workspace %w.grad.1.workspace.2 u8[8] ; forward z\n");
}

std::string refusal(const AcceptingOptions& options) {
  try {
    return after(select_kernels, kNodes, options);
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(SelectKernels, ANodeThatNoKernelTakesIsRefusedWithEveryReason) {
  EXPECT_EQ(refusal({.refuses_accumulation = {"linear_grad_weight"}}),
            "the accepting backend has no kernel for 'w.grad@1 = linear_grad_weight(%y, x@0, w.grad@0) {accumulate=1} : state ; "
            "backward y' "
            "(accepting_linear_grad_weight: makes only fresh values)");
  EXPECT_EQ(refusal({.refuses = {"linear"}}),
            "the accepting backend has no kernel for '%y = linear(x@0, w@0, b@0) : f32[2x4] activation ; forward y' "
            "(accepting_linear: told to refuse)");
  EXPECT_EQ(refusal({.missing = {"linear"}}),
            "the accepting backend has no kernel for '%y = linear(x@0, w@0, b@0) : f32[2x4] activation ; forward y' (none for "
            "this op)");
}

}  // namespace
}  // namespace snug::testing
