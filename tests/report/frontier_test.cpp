#include "report/frontier.h"

#include <gtest/gtest.h>

namespace snug::report {
namespace {

using Kind = CheckpointStrategy::Kind;

Frontier some_frontier() {
  Frontier frontier{.points = {}, .considered = std::vector<FrontierPoint>(1234)};
  for (int i = 0; i < 12; ++i) {
    frontier.points.push_back({.methods = {.precision = DType::f32, .microbatch = 10 + i, .checkpoint = CheckpointStrategy{}},
                               .planned_peak_bytes = Bytes((i + 1) * 1'000'000),
                               .seconds = 2.0 - (i / 11.0)});
  }
  frontier.points[0].methods.checkpoint = CheckpointStrategy{.kind = Kind::log};
  frontier.points[0].methods.workspace_limit = Bytes(65'536);
  return frontier;
}

TEST(FrontierText, ShowsTheNeighborsTheFastestAndTheSmallest) {
  const Frontier frontier = some_frontier();
  const MethodStep steps[] = {{.method = "everything at once", .planned_peak_bytes = Bytes(12'000'000), .seconds = 1},
                              {.method = "microbatches of 16", .planned_peak_bytes = Bytes(7'000'000), .seconds = 1.5}};
  EXPECT_EQ(explanation_text(frontier, frontier.points[6], steps),
            "What one more MB buys: 12 plans that no other of 1,234 beats in bytes and time\n"
            "       bytes vs this plan     time microbatch  checkpoint\n"
            "     1.00 MB     -6.00 MB  +100.0%         10  log, workspace 65.54 KB\n"
            "         ...\n"
            "     3.00 MB     -4.00 MB   +81.8%         12  none\n"
            "     4.00 MB     -3.00 MB   +72.7%         13  none\n"
            "     5.00 MB     -2.00 MB   +63.6%         14  none\n"
            "     6.00 MB     -1.00 MB   +54.5%         15  none\n"
            ">    7.00 MB    this plan   +45.5%         16  none\n"
            "     8.00 MB     +1.00 MB   +36.4%         17  none\n"
            "     9.00 MB     +2.00 MB   +27.3%         18  none\n"
            "    10.00 MB     +3.00 MB   +18.2%         19  none\n"
            "    11.00 MB     +4.00 MB    +9.1%         20  none\n"
            "    12.00 MB     +5.00 MB    +0.0%         21  none\n"
            "\n"
            "What each method does\n"
            "    12.00 MB                       everything at once\n"
            "     7.00 MB    -5.00 MB   +50.0%  microbatches of 16\n"
            "Times are predicted: relative to the fastest plan, and to the method before.\n");
}

TEST(FrontierJson, HasOneObjectAPoint) {
  const nlohmann::ordered_json json = frontier_json(some_frontier());
  ASSERT_EQ(json.size(), 12U);
  EXPECT_EQ(json[0].at("bytes"), 1'000'000);
  EXPECT_EQ(json[0].at("checkpoint"), "log");
  EXPECT_EQ(json[0].at("workspace_limit_bytes"), 65'536);
  EXPECT_TRUE(json[1].at("workspace_limit_bytes").is_null());
  EXPECT_EQ(json[11].at("microbatch"), 21);
}

}  // namespace
}  // namespace snug::report
