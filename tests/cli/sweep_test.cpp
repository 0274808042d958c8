// Memory against throughput as a user measures it, on models that take seconds.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

Json sweep(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"sweep"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--json");
  const Ended ended = run_snug(words);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out);
}

// What must hold of every sweep, whatever the machine's speed.
void expect_sound(const Json& result, std::size_t points) {
  ASSERT_EQ(result.at("points").size(), points);
  EXPECT_EQ(result.at("data"), "random");
  EXPECT_EQ(result.at("points").at(0).at("budget_bytes"), result.at("plain_peak_bytes"));
  std::int64_t last_budget = result.at("plain_peak_bytes").get<std::int64_t>() + 1;
  std::int64_t last_planned = last_budget;
  double last_predicted = 0;
  for (const Json& point : result.at("points")) {
    const auto budget = point.at("budget_bytes").get<std::int64_t>();
    const auto planned = point.at("planned_peak_bytes").get<std::int64_t>();
    EXPECT_EQ(point.at("measured_peak_bytes"), planned);
    EXPECT_LE(planned, budget);
    EXPECT_LT(budget, last_budget);
    EXPECT_LE(planned, last_planned) << "less budget never means more memory";
    EXPECT_GE(point.at("predicted_step_seconds").get<double>(), last_predicted) << "nor less time";
    EXPECT_GT(point.at("peak_resident_bytes").get<std::int64_t>(), planned);
    EXPECT_EQ(point.at("process_overhead_bytes").get<std::int64_t>(),
              point.at("peak_resident_bytes").get<std::int64_t>() - planned);
    const auto seconds = point.at("step_seconds").get<double>();
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(point.at("images_per_second").get<double>() * seconds, result.at("batch").get<double>(), 1e-6);
    EXPECT_NEAR(point.at("prediction_error").get<double>(), point.at("predicted_step_seconds").get<double>() / seconds - 1, 1e-9);
    EXPECT_NEAR(point.at("overhead").get<double>(), seconds / result.at("plain").at("step_seconds").get<double>() - 1, 1e-9);
    EXPECT_GE(point.at("microbatch").get<int>(), 1);
    EXPECT_TRUE(point.at("checkpoint").is_string());
    if (!point.at("same_plan_as").is_null()) {
      const Json& other = result.at("points").at(point.at("same_plan_as").get<std::size_t>());
      EXPECT_EQ(point.at("planned_peak_bytes"), other.at("planned_peak_bytes"));
      EXPECT_EQ(point.at("step_seconds"), other.at("step_seconds"));
    }
    last_budget = budget;
    last_planned = planned;
    last_predicted = point.at("predicted_step_seconds").get<double>();
  }
  EXPECT_EQ(result.at("points").back().at("planned_peak_bytes"), result.at("points").back().at("budget_bytes"))
      << "the smallest budget is exact";
  EXPECT_GE(result.at("median_prediction_error").get<double>(), 0);
}

TEST(Sweep, MeasuresTheMachineOnceThenEveryBudget) {
  const TemporaryFolder folder;
  const std::string costs = (folder / "costs.json").string();
  const std::vector<std::string> arguments{"small-cnn", "--batch", "40", "--threads", "1",  "--points",
                                           "4",         "--steps", "1",  "--costs",   costs};
  const Json first = sweep(arguments);
  expect_sound(first, 4);
  EXPECT_EQ(first.at("model"), "small-cnn");
  EXPECT_EQ(first.at("costs"), "measured on this machine");
  EXPECT_EQ(first.at("steps"), 1);
  // What was measured is read the second time, so the same is predicted.
  const Json second = sweep(arguments);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* field : {"budget_bytes", "planned_peak_bytes", "predicted_step_seconds"})
      EXPECT_EQ(first["points"][i][field], second["points"][i][field]) << field;
  }
  // `snug plan` predicts from the same file.
  const Ended planned = run_snug({"plan", "small-cnn", "--batch", "40", "--threads", "1", "--costs", costs, "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(Json::parse(planned.out)["predicted_step_seconds"], first["plain"]["predicted_step_seconds"]);
  EXPECT_EQ(Json::parse(planned.out)["costs"], "measured on this machine");
}

TEST(Sweep, AResidualNetworkFromTheFixedTable) {
  const Json result = sweep({"wrn-10-1", "--batch", "20", "--threads", "1", "--points", "3", "--steps", "1", "--costs", "none"});
  expect_sound(result, 3);
  EXPECT_EQ(result.at("costs"), "fixed table");
}

TEST(Sweep, BudgetsOfTheUsersOwnAndRealData) {
  const Json result = sweep({"small-cnn", "--batch", "40", "--threads", "1", "--budgets", "3MB..6MB", "--points", "2", "--steps",
                             "1", "--costs", "none", "--data", "embedded"});
  EXPECT_EQ(result.at("data"), "embedded");
  ASSERT_EQ(result.at("points").size(), 2U);
  EXPECT_EQ(result.at("points").at(0).at("budget_bytes"), 6'000'000);
  EXPECT_EQ(result.at("points").at(1).at("budget_bytes"), 3'000'000);
  for (const Json& point : result.at("points")) EXPECT_EQ(point.at("planned_peak_bytes"), point.at("measured_peak_bytes"));
}

TEST(Sweep, ATableForPeopleSaysWhatTheImagesWereAndThePageHasTheSame) {
  const TemporaryFolder folder;
  const std::string page = (folder / "sweep.html").string();
  const Ended ended = run_snug({"sweep", "small-cnn", "--batch", "40", "--threads", "1", "--points", "2", "--steps", "1",
                                "--costs", "none", "--html", page});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("random images"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("plain"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("fixed table"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(page), std::string::npos) << ended.out;
  std::ifstream file(page);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(html.find(R"("model":"small-cnn","batch":40)"), std::string::npos);
}

// The plans come from one frontier, and all that was considered for it is there to be drawn.
TEST(Sweep, ItsPlansLieOnTheFrontierThatItReports) {
  const Json result = sweep({"small-cnn", "--batch", "40", "--threads", "1", "--points", "2", "--steps", "1", "--costs", "none"});
  for (const Json& point : result.at("points")) {
    const Json& frontier = result.at("frontier");
    EXPECT_TRUE(std::any_of(frontier.begin(), frontier.end(),
                            [&](const Json& plan) { return plan.at("bytes") == point.at("planned_peak_bytes"); }));
  }
  EXPECT_GT(result.at("considered").size(), result.at("frontier").size());
}

void expect_refused(const std::vector<std::string>& arguments, int exit_code, const std::string& part) {
  std::vector<std::string> words{"sweep"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Ended ended = run_snug(words);
  EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(ended.err.starts_with("snug: ")) << ended.err;
  EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1) << ended.err;
  EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
}

TEST(Sweep, BadFlagsGetOneSentence) {
  const std::vector<std::string> model{"small-cnn", "--batch", "40", "--costs", "none"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), model.begin(), model.end());
    return more;
  };
  expect_refused({}, 2, "needs a model");
  expect_refused({"no-such-model", "--batch", "16", "--costs", "none"}, 2, "no-such-model");
  expect_refused(with({"--budgets", "5MB..1MB"}), 2, "1MB..5MB");
  expect_refused(with({"--html", "no/such/folder/sweep.html"}), 2, "no/such/folder");
  expect_refused(with({"--budgets", "5MB"}), 2, "6.7MB..24MB");
  expect_refused(with({"--budgets", "one..two"}), 2, "--budgets");
  expect_refused(with({"--budgets", ".."}), 2, "--budgets");
  expect_refused(with({"--budgets", "10KB..3MB"}), 3, "the smallest budget that it fits");
  expect_refused(with({"--budgets", "10KB..20KB"}), 3, "the smallest budget that it fits");
  expect_refused(with({"--points", "0"}), 2, "--points");
  expect_refused(with({"--points", "many"}), 2, "--points");
  expect_refused(with({"--steps", "0"}), 2, "--steps");
  expect_refused(with({"--data", "no/such/folder"}), 2, "no/such/folder");
  expect_refused(with({"--device", "abacus"}), 2, "abacus");
}

TEST(Costs, AFileThatTheUserNamesIsTakenOrRefused) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing.json").string();
  const std::string damaged = (folder / "damaged.json").string();
  std::ofstream(damaged) << "{\"format\":1,";
  const auto plan = [](const std::string& costs, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"plan", "small-cnn", "--batch", "8", "--threads", "1", "--json", "--costs", costs};
    words.insert(words.end(), more.begin(), more.end());
    return run_snug(words);
  };
  EXPECT_EQ(plan(missing).exit_code, 2);
  EXPECT_EQ(plan(damaged).exit_code, 2);
  EXPECT_TRUE(support::mentions(plan(damaged).err, {"not a valid", "costs"}));
  EXPECT_EQ(plan(damaged, {"--measure-costs"}).exit_code, 2);
  EXPECT_EQ(plan("none", {"--measure-costs"}).exit_code, 2);

  const Ended measured = plan(missing, {"--measure-costs"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(Json::parse(measured.out)["costs"], "measured on this machine");
  // Another number of threads is another key.
  const Ended other = run_snug({"plan", "small-cnn", "--batch", "8", "--threads", "2", "--costs", missing});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("1 thread"), std::string::npos) << other.err;
}

TEST(Costs, TheMachinesOwnFileIsSetAsideWhenItIsDamaged) {
  const TemporaryFolder folder;
  const auto file = folder / "snug" / "costs-cpu-1.json";
  const auto plan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", "small-cnn", "--batch", "8", "--threads", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_snug(words, [&] { setenv("XDG_CACHE_HOME", (folder / "").c_str(), 1); });
  };
  EXPECT_EQ(Json::parse(plan({}).out)["costs"], "fixed table");
  EXPECT_EQ(Json::parse(plan({"--measure-costs"}).out)["costs"], "measured on this machine");
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(Json::parse(plan({}).out)["costs"], "measured on this machine");

  std::ofstream(file) << "nonsense";
  const Ended ignored = plan({});
  EXPECT_EQ(ignored.exit_code, 0) << ignored.err;
  EXPECT_EQ(Json::parse(ignored.out)["costs"], "fixed table");
  EXPECT_NE(ignored.err.find("measure them again"), std::string::npos) << ignored.err;
  const Ended anew = plan({"--measure-costs"});
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_NE(anew.err.find("set aside"), std::string::npos) << anew.err;
  EXPECT_EQ(Json::parse(anew.out)["costs"], "measured on this machine");
  EXPECT_TRUE(std::filesystem::exists(file.string() + ".old"));
}

}  // namespace
}  // namespace snug::cli
