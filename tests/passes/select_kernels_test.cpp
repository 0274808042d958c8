#include "passes/select_kernels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "support/messages.h"

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
  EXPECT_TRUE(support::mentions(refusal({.refuses_accumulation = {"linear_grad_weight"}}),
                                {"w.grad", "1", "linear_grad_weight", "%y", "x@0", "accepting_linear_grad_weight", "fresh"}));
  EXPECT_TRUE(support::mentions(refusal({.refuses = {"linear"}}),
                                {"'%y = linear(x@0, w@0, b@0) : f32[2x4] activation ; forward y'", "accepting_linear", "told"}));
  EXPECT_TRUE(support::mentions(refusal({.missing = {"linear"}}),
                                {"'%y = linear(x@0, w@0, b@0) : f32[2x4] activation ; forward y'", "none"}));
}

TEST(SelectKernels, LimitThatIsTooSmallIsRefusedWithWhatTheNeediestNodeAsksFor) {
  AcceptingBackend backend({.workspace = {{"linear", Bytes(4096)}, {"linear_grad_weight", Bytes(5000)}}});
  const auto select_within = [&](std::int64_t bytes) {
    backend.workspace_limit = Bytes(bytes);
    select_kernels(program_of(kNodes), {.backend = backend});
  };
  for (const std::int64_t limit : {1, 4999}) {
    try {
      select_within(limit);
      ADD_FAILURE() << limit;
    } catch (const WorkspaceTooSmall& refusal) {
      EXPECT_EQ(refusal.least(), Bytes(5000));
      EXPECT_EQ(refusal.what(), std::string("a workspace limit of ") + (limit == 1 ? "1 byte" : "4999 bytes") +
                                    " is too small: linear_grad_weight of 'y' needs 5000 bytes (5.00 KB); raise the limit to "
                                    "that, or leave it out");
    }
  }
  EXPECT_NO_THROW(select_within(5000));
}

// No limit would help: the reason is another one.
TEST(SelectKernels, NodeWithoutAnyKernelIsNotBlamedOnTheLimit) {
  AcceptingBackend backend({.workspace = {{"linear", Bytes(4096)}}, .refuses = {"linear_grad_weight"}});
  backend.workspace_limit = Bytes(1);
  try {
    select_kernels(program_of(kNodes), {.backend = backend});
    ADD_FAILURE();
  } catch (const WorkspaceTooSmall& refusal) {
    ADD_FAILURE() << refusal.what();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("has no kernel for"), std::string::npos);
  }
}

}  // namespace
}  // namespace snug::testing
