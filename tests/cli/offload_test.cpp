// Activations that wait in host memory, as a user asks for them.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

std::vector<std::string> joined(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Offload, ASavedPlanTrainsAndBothArenasAreAsPlanned) {
  const TemporaryFolder folder;
  const std::string plan = (folder / "offload.plan").string();
  const std::vector<std::string> model{"small-cnn", "--batch", "40", "--threads", "1", "--json"};
  const std::vector<std::string> steps{"--steps", "3", "--out"};
  const auto json_of = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_snug(arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return Json::parse(ended.out, nullptr, false);
  };
  const std::vector<std::string> embedded{"--data", "embedded"};
  const Json planned = json_of(joined(joined(joined({"plan"}, model), embedded), {"--offload", "yes", "--save", plan}));
  const Json trained =
      json_of(joined(joined(joined({"train"}, model), {"--plan", plan}), joined(steps, {(folder / "offloaded").string()})));
  const Json plain = json_of(joined(joined({"train"}, model), joined(steps, {(folder / "plain").string()})));

  EXPECT_GT(planned["planned_host_bytes"].get<std::int64_t>(), 0);
  EXPECT_EQ(trained["planned_host_bytes"], planned["planned_host_bytes"]);
  EXPECT_EQ(trained["measured_host_bytes"], planned["planned_host_bytes"]);
  EXPECT_EQ(trained["planned_peak_bytes"], planned["planned_peak_bytes"]);
  EXPECT_EQ(trained["measured_peak_bytes"], planned["planned_peak_bytes"]);
  EXPECT_LT(trained["planned_peak_bytes"].get<std::int64_t>(), plain["planned_peak_bytes"].get<std::int64_t>());
  EXPECT_EQ(trained["train_loss"], plain["train_loss"]);
  EXPECT_EQ(trained["test_loss"], plain["test_loss"]);
  EXPECT_FALSE(plain.contains("planned_host_bytes"));
  EXPECT_FALSE(plain.contains("measured_host_bytes"));
}

TEST(Offload, TextNamesHostMemoryWhereThereIsAny) {
  const std::vector<std::string> ask{"plan", "small-cnn", "--batch", "40", "--threads", "1"};
  EXPECT_EQ(run_snug(ask).out.find("Host memory"), std::string::npos);
  const std::string offloaded = run_snug(joined(ask, {"--offload", "yes"})).out;
  EXPECT_NE(offloaded.find("\nHost memory "), std::string::npos) << offloaded;
}

}  // namespace
}  // namespace snug::cli
