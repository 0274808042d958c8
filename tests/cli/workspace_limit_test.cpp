// --workspace-limit reaches the choice of kernels, and the list of kernels says so.
#include <gtest/gtest.h>

#include "run_snug.h"

namespace snug::cli {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(WorkspaceLimitFlag, ChoosesKernelsWithinItAndListsTheRefused) {
  const std::vector<std::string> plan{"plan", "wrn-28-2", "--batch", "10", "--kernels"};
  std::vector<std::string> limited = plan;
  limited.insert(limited.end(), {"--workspace-limit", "400KB"});
  EXPECT_FALSE(contains(run_snug(plan).out, "the limit is"));
  const Ended ended = run_snug(limited);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(contains(ended.out, "onednn_conv2d_grad_weight_quarters")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "bytes of workspace, and the limit is 400000")) << ended.out;
}

TEST(WorkspaceLimitFlag, WhatIsNoSizeOrTooSmallIsBadInput) {
  for (const char* limit : {"much", "-1", "10B"}) {
    const Ended ended = run_snug({"plan", "small-cnn", "--batch", "8", "--workspace-limit", limit});
    EXPECT_EQ(ended.exit_code, 2) << limit;
    EXPECT_EQ(ended.out, "") << limit;
    EXPECT_TRUE(ended.err.starts_with("snug: ")) << ended.err;
  }
}

}  // namespace
}  // namespace snug::cli
