#include "report/kernels.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "report/text.h"
#include "tiny_plan.h"

namespace snug::report {
namespace {

KernelMatch wants_eight_inputs(const KernelQuery& query) {
  if (query.inputs[0].shape[1] != 8) return Refuse{"takes 8 features"};
  return Accept{};
}
KernelMatch wants_anything(const KernelQuery& /*query*/) { return Accept{}; }

constexpr KernelDef kFast{.name = "fast_linear", .op = "linear", .match = wants_eight_inputs};
constexpr KernelDef kPlain{.name = "plain_linear", .op = "linear", .match = wants_anything};

std::vector<KernelUse> tiny_kernels() {
  return kernels_of(tiny_plan().program, {.name = "test", .kernels = {&kFast, &kPlain}, .threads = 1});
}

TEST(Kernels, EachPairOfOpAndKernelIsOneEntry) {
  const auto uses = tiny_kernels();
  ASSERT_EQ(uses.size(), 11U);
  EXPECT_EQ(uses[0].op, "linear");
  EXPECT_EQ(uses[0].kernel, "fast_linear");
  EXPECT_EQ(uses[0].nodes, 1);
  EXPECT_TRUE(uses[0].refusals.empty());
  EXPECT_EQ(uses.back().op, "sgd");
  EXPECT_EQ(uses.back().nodes, 2);
  EXPECT_EQ(uses.back().sections, std::vector{SectionKind::update});
}

TEST(Kernels, RefusalsOfPreferredKernelsAreCounted) {
  const KernelUse plain = tiny_kernels()[2];
  EXPECT_EQ(plain.kernel, "plain_linear");
  ASSERT_EQ(plain.refusals.size(), 1U);
  EXPECT_EQ(plain.refusals[0].reason, "fast_linear: takes 8 features");
  EXPECT_EQ(plain.refusals[0].nodes, 1);
}

TEST(Kernels, WorkspaceIsThatOfTheNodeThatNeedsMost) {
  const auto uses = tiny_kernels();
  const auto found = std::find_if(uses.begin(), uses.end(), [](const KernelUse& use) { return use.op == "linear_grad_weight"; });
  ASSERT_NE(found, uses.end());
  EXPECT_EQ(found->workspace, Bytes(1000));
}

TEST(Kernels, TextNamesTheReasonUnderItsKernel) {
  const std::string text = kernels_text(tiny_kernels());
  EXPECT_NE(text.find("    1             linear                     plain_linear\n"
                      "                  not for 1 node: fast_linear: takes 8 features\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    1    1.00 KB  linear_grad_weight         plain_grad_weight\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace snug::report
