// A budget for the whole process, as the operating system counts it and holds it to.
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_snug.h"
#include "support/messages.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::kSanitized;
using support::TemporaryFolder;

// A control group that holds what joins it to so many bytes of memory; nothing where this process may make none.
class ControlGroup {
 public:
  static std::optional<ControlGroup> holding(std::int64_t bytes) {
    for (const auto& [root, limit] :
         {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}}) {
      const std::filesystem::path path = std::filesystem::path(root) / ("snug_test_" + std::to_string(getpid()));
      std::error_code error;
      if (!std::filesystem::create_directory(path, error)) continue;
      ControlGroup group(path);
      std::ofstream(path / limit) << bytes;
      if (std::filesystem::exists(path / limit) && std::filesystem::exists(path / "cgroup.procs")) return group;
    }
    return std::nullopt;
  }
  ControlGroup(ControlGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ControlGroup& operator=(ControlGroup&&) = delete;
  ~ControlGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }

  void join() const { std::ofstream(path_ / "cgroup.procs") << getpid(); }

 private:
  explicit ControlGroup(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

std::vector<std::string> within(const std::string& budget, const std::filesystem::path& out) {
  return {"train", "wrn-10-1", "--batch", "100",   "--process-budget", budget,  "--threads", "1", "--steps",
          "3",     "--costs",  "none",    "--out", out.string(),       "--json"};
}

TEST(ProcessBudget, TheProcessStaysInsideItAndTheArenaTakesWhatIsLeft) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps shadows of all memory";
  const TemporaryFolder folder;
  std::int64_t last = 0;
  for (const std::int64_t budget : {35'000'000, 60'000'000}) {
    const auto out = folder.path() / std::to_string(budget);
    const Ended ended = run_snug(within(std::to_string(budget) + "B", out));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const Json json = Json::parse(ended.out);
    EXPECT_EQ(json.at("process_budget_bytes"), budget);
    EXPECT_LE(json.at("peak_resident_bytes"), budget);
    EXPECT_LE(json.at("planned_peak_bytes"), json.at("budget_bytes"));
    EXPECT_EQ(json.at("measured_peak_bytes"), json.at("planned_peak_bytes"));
    const auto arena = json.at("budget_bytes").get<std::int64_t>();
    EXPECT_GT(arena, last) << "more for the process is more for the arena";
    last = arena;
    EXPECT_NE(text_of(out / "recipe.toml").find("process_budget = "), std::string::npos);
  }
}

TEST(ProcessBudget, WhatIsTooSmallIsRefusedWithWhatWorksAndTheSystemHoldsThat) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps shadows of all memory";
  const TemporaryFolder folder;
  const Ended refused = run_snug(within("5MB", folder.path() / "refused"));
  ASSERT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "refused"));
  const auto least = Json::parse(refused.out).at("error").at("least_bytes").get<std::int64_t>();
  EXPECT_GT(least, 5'000'000);
  // A few pages come and go from run to run, and a group counts the pages of files that it was the first to read.
  const std::int64_t given = least + (1 << 20);
  std::optional<ControlGroup> group = ControlGroup::holding(given);
  const Ended ended = run_snug(within(std::to_string(given) + "B", folder.path() / "least"), [&] {
    if (group) group->join();
  });
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_LE(Json::parse(ended.out).at("peak_resident_bytes"), given);
}

TEST(ProcessBudget, StandsForTheOtherBudget) {
  EXPECT_TRUE(support::mentions(run_snug({"train", "small-cnn", "--budget", "2MB", "--process-budget", "40MB"}).err,
                                {"--budget", "--process-budget", "budgets"}));
}

// A recipe's own, in a command that measures nothing.
TEST(ProcessBudget, IsNotPassedOverInSilence) {
  const TemporaryFolder folder;
  const std::string recipe = (folder.path() / "recipe.toml").string();
  std::ofstream(recipe) << "model = \"small-cnn\"\nprocess_budget = \"40MB\"\n";
  const Ended ended = run_snug({"plan", recipe});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find("process_budget"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace snug::cli
