#include "report/text.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "report/chart.h"
#include "tiny_plan.h"

namespace snug::report {
namespace {

std::string golden(const std::string& name) {
  std::ifstream file(SNUG_TEST_SOURCE_DIR "/report/golden/" + name);
  if (!file) throw std::runtime_error("no golden text " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Text, FlopsHaveThreeToFiveDigitsAndAUnit) {
  EXPECT_EQ(format_flops(0), "0");
  EXPECT_EQ(format_flops(999), "999");
  EXPECT_EQ(format_flops(1000), "1.00 K");
  EXPECT_EQ(format_flops(429'608'448), "429.61 M");
  EXPECT_EQ(format_flops(999'999), "1.00 M");
  EXPECT_EQ(format_flops(8'280'000'000), "8.28 G");
}

TEST(Text, CountsAreGroupedByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(650), "650");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1'456'858), "1,456,858");
  EXPECT_EQ(format_count(-1000), "-1,000");
}

TEST(Text, PlanReadsLikeItsGoldenText) {
  Plan plan = tiny_plan();
  plan.plan_seconds = 0.25;
  EXPECT_EQ(plan_text(plan, {.threads = 2}), golden("tiny_plan.txt"));
}

TEST(Text, ProfileReadsLikeItsGoldenText) { EXPECT_EQ(profile_text(tiny_plan(), {.threads = 1}), golden("tiny_profile.txt")); }

TEST(Text, NoLineIsWiderThanATerminal) {
  const std::string long_name(100, 'x');
  const Plan plan = plan_of(replaced(replaced(tiny_text(), "body.one.fc", long_name), "head.fc", "head." + long_name));
  for (const std::string& text : {plan_text(plan, {}), profile_text(plan, {})}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), 80) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
  }
}

TEST(Text, AProgramWithoutNodesIsToldToo) {
  const Plan plan = plan_of("program empty batch 1 microbatch 1\nstate x : f32[10] input\nsection micro\n");
  EXPECT_NE(plan_text(plan, {}).find("Planned peak         40 B\n"), std::string::npos) << plan_text(plan, {});
  EXPECT_NE(profile_text(plan, {}).find("Planned peak         40 B\n"), std::string::npos);
}

}  // namespace
}  // namespace snug::report
