// How a plan's bytes grow with depth: pre-activation ResNets, each twice as deep as the one before, at one batch. What is counted
// is what lies above the persistent bytes, which grow with the parameters whatever is kept. bench/depth.py prints the same
// figures.
#include <vector>

#include <gtest/gtest.h>

#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

// 54 residual blocks, and twice as many each time. A batch at which values are large against what every layer adds whatever
// is dropped: its statistics.
std::vector<double> transient_bytes_by_depth(std::string_view strategy) {
  const AcceptingBackend backend;
  std::vector<double> bytes;
  for (const char* model : {"preresnet-110", "preresnet-218", "preresnet-434", "preresnet-866", "preresnet-1730"}) {
    const Plan plan = compile(build({model}, 16), backend, {.methods = {.checkpoint = parse_checkpoint_strategy(strategy)}});
    bytes.push_back(static_cast<double>((plan.planned_peak_bytes - plan.persistent_bytes).count()));
  }
  return bytes;
}

TEST(Depth, KeepingEverythingTakesBytesLikeTheDepth) {
  const std::vector<double> bytes = transient_bytes_by_depth("none");
  for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_NEAR(bytes[i] / bytes[i - 1], 2.0, 0.05) << i;
}

TEST(Depth, SegmentsTakeBytesLikeItsSquareRoot) {
  const std::vector<double> bytes = transient_bytes_by_depth("sqrt");
  for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_NEAR(bytes[i] / bytes[i - 1], 1.414, 0.05) << i;
}

// Every doubling adds one more value that stays, and the statistics of the deepest level that are there at a time.
TEST(Depth, HalvesOfHalvesTakeBytesLikeItsLogarithm) {
  const std::vector<double> bytes = transient_bytes_by_depth("log");
  const double step = bytes[1] - bytes[0];
  EXPECT_LT(step, bytes[0] / 4);
  for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_NEAR((bytes[i] - bytes[i - 1]) / step, 1.0, 0.1) << i;
}

}  // namespace
}  // namespace snug::testing
