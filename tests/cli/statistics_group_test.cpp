// --statistics-group reaches the program and says so wherever a plan or a run is described.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(StatisticsGroupFlag, ReachesTheProgramAndItsDescription) {
  const std::vector<std::string> plan{"plan", "small-cnn", "--batch", "20", "--statistics-group", "8"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), plan.begin(), plan.end());
    const Ended ended = run_snug(more);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended.out;
  };
  EXPECT_TRUE(contains(with({}), "small-cnn, batch 20, batch norm over groups of 8\n"));
  EXPECT_TRUE(contains(with({"--dump-after", "select_kernels"}), "{group_size=8} : f32[3x16]"));
  EXPECT_EQ(nlohmann::json::parse(with({"--json"}))["statistics_group"], 8);
  EXPECT_EQ(nlohmann::json::parse(run_snug({"plan", "small-cnn", "--batch", "20", "--json"}).out)["statistics_group"], nullptr);
  EXPECT_EQ(run_snug({"profile", "small-cnn", "--batch", "20", "--statistics-group", "8"}).exit_code, 0);
}

TEST(StatisticsGroupFlag, WhatDoesNotGoTogetherIsBadInput) {
  const std::vector<std::vector<std::string>> bad{
      {"plan", "small-cnn", "--batch", "20", "--statistics-group", "0"},
      {"plan", "small-cnn", "--batch", "20", "--statistics-group", "21"},
      {"plan", "small-cnn", "--batch", "20", "--microbatch", "10", "--statistics-group", "4"},
      {"plan", "vgg-16", "--batch", "2", "--image-size", "32", "--statistics-group", "1"},
      {"profile", "small-cnn", "--batch", "20", "--statistics-group", "4", "--accounting", "paper"},
      {"train", "small-cnn", "--steps", "1", "--microbatch", "10", "--statistics-group", "4"}};
  for (const auto& arguments : bad) {
    const Ended ended = run_snug(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments[0] << ": " << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_TRUE(ended.err.starts_with("snug: ")) << ended.err;
  }
}

TEST(StatisticsGroupFlag, ATrainedRunKeepsIt) {
  const support::TemporaryFolder folder;
  const std::string out = (folder.path() / "run").string();
  const Ended ended =
      run_snug({"train", "small-cnn", "--steps", "2", "--batch", "10", "--statistics-group", "5", "--out", out, "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["statistics_group"], 5);
  EXPECT_TRUE(contains(ended.err, "steps of 10 examples, batch norm over groups of 5; planned")) << ended.err;
  EXPECT_EQ(run_snug({"eval", out}).exit_code, 0);
}

}  // namespace
}  // namespace snug::cli
