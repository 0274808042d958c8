#include "train/measure_costs.h"

#include <set>

#include <gtest/gtest.h>

#include "small_session.h"
#include "train/random_batches.h"

namespace snug::train {
namespace {

TEST(MeasureCosts, EveryNodeOfAStepIsKnownAfterwards) {
  Session session = small_session();
  const Program& program = session.plan().program;
  const RandomBatches batches(program, program.microbatch, 1);
  const std::vector<NodeCost> costs = measure_costs(session, batches[0], 2);
  std::set<std::pair<std::string, std::string>> known;
  for (const NodeCost& cost : costs) {
    EXPECT_GT(cost.seconds, 0) << cost.key;
    EXPECT_TRUE(known.emplace(cost.key, cost.kernel).second) << cost.key << " is there twice";
  }
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    const Section& section = *program.find_section(kind);
    for (const Node& node : section.nodes)
      EXPECT_TRUE(known.contains({cost_key(section, node), node.kernel})) << cost_key(section, node);
  }
  double sum = 0;
  for (const NodeCost& cost : costs) sum += cost.seconds;
  EXPECT_GT(step_seconds(make_cost_table(costs), program), sum) << "two microbatches, and kinds that occur more than once";
}

TEST(MeasureCosts, LeavesTheSessionAtFullSpeedAndItsStepsAsTheyAre) {
  Session timed = small_session();
  Session plain = small_session();
  const Program& program = timed.plan().program;
  const RandomBatches batches(program, program.microbatch, 1);
  measure_costs(timed, batches[0], 1);
  for (int i = 0; i < 3; ++i) plain.train_step(batches[0]);
  EXPECT_EQ(timed.step(), plain.step());
  EXPECT_EQ(all_bytes(timed), all_bytes(plain)) << "timing node by node changes no bit";
}

TEST(MeasureCosts, TheDifferenceToTheWholeStepIsSpreadEvenly) {
  std::vector<double> more{1, 2, 3};
  spread_difference(more, 9);
  EXPECT_EQ(more, (std::vector<double>{2, 3, 4}));
  std::vector<double> less{1, 2, 3};
  spread_difference(less, 4.5);
  EXPECT_EQ(less, (std::vector<double>{0.5, 1.5, 2.5}));
}

TEST(MeasureCosts, NoNodeBecomesFree) {
  std::vector<double> seconds{0.1, 10, 10};
  spread_difference(seconds, 10);
  EXPECT_GT(seconds[0], 0);
  EXPECT_NEAR(seconds[0] + seconds[1] + seconds[2], 10, 1e-12);
  EXPECT_DOUBLE_EQ(seconds[1], seconds[2]);
}

}  // namespace
}  // namespace snug::train
