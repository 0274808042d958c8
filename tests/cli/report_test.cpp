// The memory report: a page from a plan, and from a run's folder.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "io/file_io.h"
#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::ordered_json;

// The data that a page carries, but for its version.
Json data_of(const std::filesystem::path& path) {
  const std::string html = text_of(path);
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = html.find(begin) + begin.size();
  Json json = Json::parse(html.substr(from, html.find("</script>", from) - from));
  json.erase("version");
  return json;
}

// Times differ from call to call.
Json without_times(Json json) {
  json.erase("plan_seconds");
  json.erase("passes");
  return json;
}

TEST(Report, ThePageIsDrawnFromWhatJsonPrints) {
  const support::TemporaryFolder folder;
  const std::string page = (folder.path() / "plan.html").string();
  const std::vector<std::string> plan{"plan", "small-cnn", "--batch", "20", "--microbatch", "10", "--budget", "9MB"};
  std::vector<std::string> drawn = plan;
  drawn.insert(drawn.end(), {"--html", page});
  std::vector<std::string> printed = plan;
  printed.insert(printed.end(), {"--json", "--timeline"});
  const Ended ended = run_snug(drawn);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find(page + ": the memory report"), std::string::npos) << ended.out;
  EXPECT_EQ(without_times(data_of(page)), without_times(Json::parse(run_snug(printed).out)));
  const Json json = data_of(page);
  EXPECT_EQ(json.at("methods").back().at("method"), "microbatches of 10");
  EXPECT_EQ(json.at("methods").back().at("bytes"), json.at("planned_peak_bytes"));
  EXPECT_GE(json.at("considered").size(), json.at("frontier").size());
  // Without --timeline the columns stay out of what is printed.
  drawn.push_back("--json");
  EXPECT_FALSE(Json::parse(run_snug(drawn).out).contains("timeline"));
}

TEST(Report, ARunsPageHasItsPlanAndItsTraining) {
  const support::TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const Ended trained = run_snug({"train", "small-cnn", "--batch", "20", "--steps", "3", "--out", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Ended ended = run_snug({"report", run});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = data_of(run + "/report.html");
  EXPECT_EQ(json.at("model"), "small-cnn");
  EXPECT_EQ(json.at("run"), run);
  EXPECT_EQ(json.at("methods").size(), 1U);
  EXPECT_EQ(json.at("methods").back().at("bytes"), json.at("planned_peak_bytes"));
  EXPECT_GE(json.at("frontier").size(), 2U);
  EXPECT_EQ(json.at("timeline").at("sections").at(0).at("section"), "micro");
  EXPECT_EQ(json.at("training").at("columns").at("step").back(), 3);
  EXPECT_TRUE(json.at("training").at("columns").contains("loss"));
  EXPECT_EQ(without_times(Json::parse(run_snug({"report", run, "--json"}).out)), without_times(json));
}

// The run's folder may have been carried to a machine without its data, and its budget left the choice to the solver.
TEST(Report, ARunsMethodsAreThoseThatItsBudgetAskedFor) {
  const support::TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const Ended trained =
      run_snug({"train", "small-cnn", "--batch", "40", "--steps", "1", "--budget", "2MB", "--costs", "none", "--out", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json json = Json::parse(run_snug({"report", run, "--json"}).out);
  const Json& methods = json.at("methods");
  ASSERT_GE(methods.size(), 2U);
  EXPECT_EQ(methods.front().at("method"), "everything at once");
  EXPECT_GT(methods.front().at("bytes"), 2'000'000);
  EXPECT_EQ(methods.back().at("bytes"), json.at("planned_peak_bytes"));
  EXPECT_EQ(methods.front().at("bytes"), json.at("frontier").back().at("bytes"));
}

// All of the weights are no method.
TEST(Report, AllWeightsThatWereAskedForAreNoMethod) {
  const support::TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  ASSERT_EQ(run_snug({"train", "small-cnn", "--batch", "20", "--steps", "1", "--nonzero", "1", "--out", run}).exit_code, 0);
  const Json json = Json::parse(run_snug({"report", run, "--json"}).out);
  EXPECT_EQ(json.at("methods").size(), 1U) << json.at("methods");
}

// A plan from a file of an earlier version does not say by which strategy it recomputes; the page then says why two of its parts
// are missing.
TEST(Report, WhatCannotBeExplainedIsSaid) {
  const support::TemporaryFolder folder;
  const std::string file = (folder.path() / "small.plan").string();
  const std::string run = (folder.path() / "run").string();
  ASSERT_EQ(run_snug({"plan", "small-cnn", "--batch", "20", "--checkpoint", "sqrt", "--save", file}).exit_code, 0);
  const Ended trained = run_snug({"train", "small-cnn", "--batch", "20", "--steps", "1", "--plan", file, "--out", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(Json::parse(run_snug({"report", run, "--json"}).out).at("checkpoint"), "sqrt");
  for (const char* name : {"plan.txt", "recipe.toml"}) {
    std::string older;
    std::istringstream lines(io::read_text_file(folder.path() / "run" / name, 100'000'000));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("methods ") && !line.starts_with("checksum ") && !line.starts_with("checkpoint "))
        older += line + "\n";
    }
    io::write_text_file(folder.path() / "run" / name, older);
  }
  const Json json = Json::parse(run_snug({"report", run, "--json"}).out);
  EXPECT_EQ(json.at("checkpoint"), "as planned");
  EXPECT_FALSE(json.contains("methods"));
  EXPECT_NE(json.at("not_explained").get<std::string>().find("came from a file"), std::string::npos);
}

// Python's own pickle reads it back; replayed, it comes to the bytes that the plan says, and nothing overlaps.
TEST(Report, ATorchSnapshotReplaysToThePlan) {
  const support::TemporaryFolder folder;
  const std::string file = (folder.path() / "plan.pickle").string();
  const Ended planned =
      run_snug({"plan", "small-cnn", "--batch", "20", "--microbatch", "10", "--json", "--torch-snapshot", file});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Json json = Json::parse(planned.out);
  const std::string script = (folder.path() / "replay.py").string();
  std::ofstream(script) << R"(
import pickle, sys
snapshot = pickle.load(open(sys.argv[1], "rb"))
segment, = snapshot["segments"]
assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
trace, = snapshot["device_traces"]
live, most = {}, 0
for event in trace:
    begin, end = event["addr"], event["addr"] + event["size"]
    assert 0 <= begin and end <= segment["total_size"]
    if event["action"] == "alloc":
        assert all(end <= a or a + size <= begin for a, size in live.items() if size), event
        assert event["frames"][0]["filename"], event
        live[begin] = event["size"]
        most = max(most, sum(live.values()))
    else:
        assert live.pop(begin) == event["size"], event
active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
assert sum(live.values()) == sum(block["size"] for block in active)
print(segment["total_size"], most)
)";
  FILE* pipe = popen(fmt::format("python3 '{}' '{}' 2>&1", script, file).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << said;
  const std::int64_t planned_peak = json.at("planned_peak_bytes").get<std::int64_t>();
  EXPECT_EQ(said, fmt::format("{} {}\n", planned_peak, planned_peak - json.at("gap_bytes").get<std::int64_t>()));
}

TEST(Report, WhatIsNotThereIsRefusedInASentence) {
  const support::TemporaryFolder folder;
  const Ended no_run = run_snug({"report", folder.path().string()});
  EXPECT_EQ(no_run.exit_code, 2);
  EXPECT_NE(no_run.err.find("holds no run"), std::string::npos) << no_run.err;
  const Ended no_folder = run_snug({"plan", "small-cnn", "--batch", "8", "--html", (folder.path() / "no" / "x.html").string()});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_EQ(run_snug({"report"}).exit_code, 2);
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "8", "--timeline"}).exit_code, 2);
}

}  // namespace
}  // namespace snug::cli
