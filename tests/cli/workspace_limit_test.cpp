// --workspace-limit reaches the choice of kernels, and the list of kernels says so.
#include <gtest/gtest.h>

#include "run_snug.h"
#include "support/messages.h"

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

// The number behind "needs" in a refusal.
std::int64_t least_of(const std::string& refusal) {
  const std::string before = " needs ";
  const std::size_t at = refusal.find(before);
  return at == std::string::npos ? 0 : std::stoll(refusal.substr(at + before.size()));
}

TEST(WorkspaceLimitFlag, RefusalNamesTheLeastThatWorksToTheByte) {
  const std::vector<std::vector<std::string>> cases{
      {"plan", "small-cnn", "--batch", "8"},
      {"plan", "resnet-18", "--batch", "8"},
      {"plan", "small-cnn", "--batch", "20", "--budget", "900KB"},
      {"plan", "small-cnn", "--batch", "8", "--checkpoint", "sqrt", "--precision", "fp16"},
  };
  for (const std::vector<std::string>& plan : cases) {
    const auto with_limit = [&](std::int64_t bytes) {
      std::vector<std::string> limited = plan;
      limited.insert(limited.end(), {"--threads", "1", "--workspace-limit", std::to_string(bytes)});
      return run_snug(limited);
    };
    const Ended refused = with_limit(10);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(support::mentions(refused.err, {"workspace limit", "10 bytes", "too small"})) << refused.err;
    EXPECT_TRUE(support::mentions(refused.err, {"raise", "limit"})) << refused.err;
    EXPECT_FALSE(contains(refused.err, "@")) << "no text of the program: " << refused.err;
    const std::int64_t least = least_of(refused.err);
    ASSERT_GT(least, 0) << refused.err;
    EXPECT_NE(with_limit(least).exit_code, 2) << refused.err;  // whether it fits a budget is another question
    EXPECT_EQ(least_of(with_limit(least - 1).err), least);
  }
}

// What the help names must not be refused.
TEST(WorkspaceLimitFlag, ExampleOfTheHelpWorks) {
  const std::string help = run_snug({"plan", "--help"}).out;
  const std::string flag = help.substr(help.find("--workspace-limit"));
  const std::size_t at = flag.find("such as ") + 8;
  const std::string example = flag.substr(at, flag.find_first_of("B", at) + 1 - at);
  for (const char* model : {"resnet-18", "small-cnn", "wrn-28-2"}) {
    EXPECT_EQ(run_snug({"plan", model, "--batch", "8", "--workspace-limit", example}).exit_code, 0) << model << " " << example;
  }
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
