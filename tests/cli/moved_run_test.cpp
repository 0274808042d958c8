// A run that goes on where other instructions are: oneDNN's own limit stands for another processor.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "io/plan_file.h"
#include "run_snug.h"
#include "snapshot_tensors.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

constexpr const char* kPlain = "SSE41";  // every processor that this runs on has more

Ended run_limited(const std::vector<std::string>& arguments, const char* limit) {
  return run_snug(arguments, [=] {
    if (limit != nullptr) setenv("ONEDNN_MAX_CPU_ISA", limit, 1);
  });
}

std::vector<std::string> train(const std::filesystem::path& run, const std::string& steps, const std::vector<std::string>& more) {
  std::vector<std::string> words{"train",   "small-cnn", "--batch", "20",         "--threads", "1",
                                 "--steps", steps,       "--out",   run.string(), "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void raise_steps(const std::filesystem::path& run) {
  std::ifstream file(run / "recipe.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = text.find("steps = 2");
  ASSERT_NE(at, std::string::npos) << text;
  std::ofstream(run / "recipe.toml") << text.replace(at, 9, "steps = 4");
}

struct Move {
  const char* name;
  std::vector<std::string> flags;
};
void PrintTo(const Move& move, std::ostream* os) { *os << move.name; }

class MovedRunKinds : public testing::TestWithParam<Move> {};

TEST_P(MovedRunKinds, GoesOnWithThePlanThatWouldBeMadeThere) {
  for (const auto& [from, to] : {std::pair<const char*, const char*>{nullptr, kPlain}, {kPlain, nullptr}}) {
    const TemporaryFolder folder;
    const auto run = folder / "run";
    ASSERT_EQ(run_limited(train(run, "2", GetParam().flags), from).exit_code, 0);
    raise_steps(run);
    const Ended moved = run_limited({"train", "--out", run.string(), "--resume", "--json"}, to);
    ASSERT_EQ(moved.exit_code, 0) << moved.err;
    EXPECT_TRUE(support::mentions(moved.err, {"made again", "recipe"})) << moved.err;
    EXPECT_NE(moved.err.find("so bits differ from here on"), std::string::npos) << moved.err;
    const Json result = Json::parse(moved.out);
    EXPECT_EQ(result["steps"], 4);
    EXPECT_EQ(result["measured_peak_bytes"], result["planned_peak_bytes"]);

    // Its folder holds the plan of a run that was begun there.
    const auto begun = folder / "begun";
    ASSERT_EQ(run_limited(train(begun, "2", GetParam().flags), to).exit_code, 0);
    EXPECT_EQ(io::print_plan(io::read_plan_file(run / "plan.txt")), io::print_plan(io::read_plan_file(begun / "plan.txt")));

    // From then on it is a run like any other.
    const Ended again = run_limited({"train", "--out", run.string(), "--resume", "--json"}, to);
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.err.find("made again"), std::string::npos) << again.err;
    EXPECT_EQ(Json::parse(again.out)["test_loss"], result["test_loss"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MovedRunKinds,
                         testing::Values(Move{"plain", {}}, Move{"budget", {"--budget", "2.2MB"}},
                                         Move{"bf16", {"--precision", "bf16"}},
                                         Move{"sparse", {"--nonzero", "0.5", "--precision", "fp16"}}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(MovedRun, OnTheSameMachineThePlanStays) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_limited(train(run, "2", {}), nullptr).exit_code, 0);
  const std::string plan = io::print_plan(io::read_plan_file(run / "plan.txt"));
  raise_steps(run);
  const Ended ended = run_limited({"train", "--out", run.string(), "--resume"}, nullptr);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.err.find("made again"), std::string::npos) << ended.err;
  EXPECT_EQ(io::print_plan(io::read_plan_file(run / "plan.txt")), plan);
}

// Weights do not depend on where they are read.
TEST(MovedRun, IsTestedAndExportedAnywhere) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_limited(train(run, "2", {"--budget", "2.2MB"}), nullptr).exit_code, 0);
  const Ended here = run_limited({"eval", run.string(), "--json"}, nullptr);
  const Ended there = run_limited({"eval", run.string(), "--json"}, kPlain);
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_NEAR(Json::parse(there.out)["test_loss"].get<double>(), Json::parse(here.out)["test_loss"].get<double>(), 1e-4);
  ASSERT_EQ(run_limited({"export", run.string(), "--to", (folder / "here").string()}, nullptr).exit_code, 0);
  ASSERT_EQ(run_limited({"export", run.string(), "--to", (folder / "there").string()}, kPlain).exit_code, 0);
  const auto bytes = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_EQ(bytes(folder / "here"), bytes(folder / "there"));
}

}  // namespace
}  // namespace snug::cli
