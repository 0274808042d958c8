#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "analysis/chain_program.h"

namespace snug {
namespace {

// Sizes and costs of every kind of link, from small whole numbers, so that sums are exact.
std::vector<ChainLink> random_chain(std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int from, int to) { return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1)); };
  std::vector<ChainLink> links(length);
  for (ChainLink& link : links) {
    link.carried_bytes = pick(1, 5);
    link.pass_bytes = link.carried_bytes + pick(0, 4);
    link.pass_seconds = pick(1, 9);
    link.gradient_bytes = link.carried_bytes + pick(0, 1);
    std::int64_t kept = link.carried_bytes + pick(3, 9);
    double renew = 0;
    for (int mode = 0; mode < pick(1, 3); ++mode) {
      link.modes.push_back({.kept_bytes = kept,
                            .forward_bytes = kept + pick(0, 3),
                            .last_forward_bytes = std::max<std::int64_t>(0, kept - link.carried_bytes + pick(0, 1)),
                            .backward_bytes = kept + link.carried_bytes + pick(0, 4),
                            .again_seconds = link.pass_seconds + pick(0, 1),
                            .last_seconds = link.pass_seconds * pick(1, 2) / 2,
                            .renew_seconds = renew});
      kept = std::max<std::int64_t>(link.carried_bytes, kept - pick(1, 4));
      renew += pick(1, 3);
    }
  }
  links.back().carried_bytes = 0;
  return links;
}

// Calls `next` with every tree of stretches over links [first, last], in every mode.
void for_every_plan(const std::vector<ChainLink>& links, ChainPlan& plan, std::size_t region, std::size_t first, std::size_t last,
                    const std::function<void()>& next) {
  plan.region[first] = region;
  for (std::size_t mode = 0; mode < links[first].modes.size(); ++mode) {
    plan.mode[first] = mode;
    if (first == last) {
      next();
    } else {
      for_every_plan(links, plan, region, first + 1, last, next);
    }
    plan.region[first] = region;
  }
  for (std::size_t middle = first + 1; middle <= last; ++middle) {
    const std::size_t regions = plan.parent.size();
    plan.parent.push_back(region);
    for_every_plan(links, plan, regions, first, middle - 1,
                   [&, middle] { for_every_plan(links, plan, region, middle, last, next); });
    plan.parent.resize(regions);
  }
}

TEST(ChainProgram, FindsTheLeastTimeOfAllSchedules) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const std::size_t length = 1 + seed % 6;
    const std::vector<ChainLink> links = random_chain(length, seed);
    std::map<std::int64_t, double> least;  // by bytes of the peak
    ChainPlan plan;
    plan.region.assign(length, 0);
    plan.mode.assign(length, 0);
    for_every_plan(links, plan, 0, 0, length - 1, [&] {
      const ChainFigures figures = run_chain(links, plan);
      const auto [found, is_new] = least.emplace(figures.peak_bytes, figures.seconds);
      if (!is_new) found->second = std::min(found->second, figures.seconds);
    });
    const std::int64_t most = least.rbegin()->first;
    const ChainProgram program(links, most, most);
    ASSERT_EQ(program.unit_bytes(), 1);
    double best = ChainProgram::kNever;
    for (std::int64_t bytes = 0; bytes <= most; ++bytes) {
      if (const auto found = least.find(bytes); found != least.end()) best = std::min(best, found->second);
      ASSERT_EQ(program.seconds(bytes), best) << "seed " << seed << ", " << bytes << " bytes";
      const std::optional<ChainPlan> found = program.plan(bytes);
      ASSERT_EQ(found.has_value(), best < ChainProgram::kNever);
      if (!found) continue;
      const ChainFigures figures = run_chain(links, *found);
      EXPECT_EQ(figures.seconds, best);
      EXPECT_LE(figures.peak_bytes, bytes);
    }
  }
}

TEST(ChainProgram, StepsAreWhereAFasterPlanBegins) {
  const std::vector<ChainLink> links = random_chain(7, 5);
  const ChainProgram program(links, 200, 200);
  const std::vector<std::int64_t> steps = program.steps();
  ASSERT_GT(steps.size(), 3U);
  EXPECT_EQ(program.seconds(steps.front() - 1), ChainProgram::kNever);
  EXPECT_FALSE(program.plan(steps.front() - 1));
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LT(program.seconds(steps[i]), program.seconds(steps[i - 1]));
    EXPECT_EQ(program.seconds(steps[i] - 1), program.seconds(steps[i - 1]));
  }
}

// Long chains are solved in groups: never better than what their plan says, and near the exact solution of a plain chain.
TEST(ChainProgram, LongChainsKeepTheirBytes) {
  std::vector<ChainLink> links(300);
  for (ChainLink& link : links) {
    link = {.modes = {{.kept_bytes = 30,
                       .forward_bytes = 40,
                       .last_forward_bytes = 20,
                       .backward_bytes = 50,
                       .again_seconds = 2,
                       .last_seconds = 1}},
            .carried_bytes = 10,
            .pass_bytes = 30,
            .pass_seconds = 2,
            .gradient_bytes = 10};
  }
  const ChainProgram program(links, 2000, 200);
  for (const std::int64_t bytes : {150, 300, 600, 1000, 2000}) {
    const std::optional<ChainPlan> plan = program.plan(bytes);
    ASSERT_TRUE(plan) << bytes;
    const ChainFigures figures = run_chain(links, *plan);
    EXPECT_EQ(figures.seconds, program.seconds(bytes));
    EXPECT_LE(figures.peak_bytes, bytes);
    EXPECT_GT(figures.peak_bytes, bytes * 3 / 4);
  }
  // 20 segments of 15 links: 200 bytes of cuts and 15 * 30 of the segment.
  EXPECT_LT(program.seconds(700), 300 * 2);
}

}  // namespace
}  // namespace snug
