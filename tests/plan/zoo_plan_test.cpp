// Plans of real models: valid, close to what lifetimes alone demand, and small.
#include <algorithm>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "placement/problem.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

// Backends that make planning as easy and as hard as it gets: no scratch at all; kernels that want much of it and add to nothing.
AcceptingOptions demanding() {
  AcceptingOptions options{.workspace = {{"conv2d", Bytes(100'000)},
                                         {"conv2d_grad_input", Bytes(70'001)},
                                         {"conv2d_grad_weight", Bytes(418'000)},
                                         {"batch_norm_grad_reduce", Bytes(1)},
                                         {"linear", Bytes(63)}}};
  for (const OpDef* op : ops::all()) options.refuses_accumulation.insert(op->name);
  return options;
}

class ZooPlans : public ::testing::TestWithParam<ZooModel> {
 protected:
  // Calls check(plan, what) for each batch size and backend.
  template <typename Check>
  void for_each_plan(Check check) {
    for (const AcceptingOptions& options : {AcceptingOptions{}, demanding()}) {
      const AcceptingBackend backend(options);
      for (const std::int64_t batch : {1, 3, 8}) {
        const std::string what = fmt::format("batch {}{}", batch, options.workspace.empty() ? "" : ", demanding kernels");
        check(compile(build(GetParam(), batch), backend), what);
      }
    }
  }
};

TEST_P(ZooPlans, AreValid) {
  for_each_plan([](const Plan& plan, const std::string& what) { EXPECT_EQ(find_violation(plan), std::nullopt) << what; });
}

TEST_P(ZooPlans, AreWithinOnePercentOfTheLivenessBound) {
  for_each_plan([](const Plan& plan, const std::string& what) {
    EXPECT_GE(plan.planned_peak_bytes, plan.bound_bytes) << what;
    EXPECT_LE(static_cast<double>(plan.planned_peak_bytes.count()), 1.01 * static_cast<double>(plan.bound_bytes.count())) << what;
  });
}

TEST_P(ZooPlans, ClassesAndGapSumToThePlannedPeak) {
  for_each_plan([](const Plan& plan, const std::string& what) {
    const PeakMoment peak = peak_moment(plan);
    Bytes sum = peak.gap_bytes;
    for (const Bytes bytes : peak.by_class) sum += bytes;
    EXPECT_EQ(sum, plan.planned_peak_bytes) << what;
    EXPECT_GE(peak.gap_bytes, Bytes(0)) << what;
    // The gap is alignment: at most one boundary for each thing that is alive, unless the placement has holes.
    const Bytes holes = plan.planned_peak_bytes - plan.bound_bytes;
    EXPECT_LE(peak.gap_bytes, kAlignment * static_cast<std::int64_t>(peak.largest.size()) + holes) << what;
    EXPECT_EQ(peak.section, SectionKind::micro) << what;
    EXPECT_FALSE(peak.node_text.empty()) << what;
    EXPECT_TRUE(std::is_sorted(peak.largest.begin(), peak.largest.end(), [](const auto& a, const auto& b) {
      return a.size > b.size;
    })) << what;
  });
}

TEST_P(ZooPlans, ABatchSplitIntoMicrobatchesTakesNoMoreThanTheMicrobatch) {
  const AcceptingBackend backend;
  const Plan whole = compile(build(GetParam(), 3), backend);
  const Plan split = compile(build(GetParam(), 3), backend, {.batch = 12});
  EXPECT_EQ(split.planned_peak_bytes, whole.planned_peak_bytes);
  EXPECT_EQ(split.program.batch, 12);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPlans, ::testing::ValuesIn(kZooModels), [](const auto& instance) {
  std::string name = instance.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The report's figure for this network, computed there from its rules; the real plan must not be larger.
TEST(WideResNet, OfTheReportFitsTheReportsFigure) {
  const AcceptingBackend backend;
  const Plan plan = compile(build({"wrn-28-2"}, 100), backend);
  EXPECT_LE(plan.planned_peak_bytes, Bytes(404'800'000));
  RecordProperty("planned_peak_bytes", std::to_string(plan.planned_peak_bytes.count()));
  fmt::print("wrn-28-2, batch 100: {} bytes planned\n", plan.planned_peak_bytes.count());
}

TEST(WideResNet, OfTheReportByClass) {
  const AcceptingBackend backend;
  const PeakMoment peak = peak_moment(compile(build({"wrn-28-2"}, 100), backend));
  const auto bytes = [&](MemoryClass memory_class) { return peak.by_class[static_cast<std::size_t>(memory_class)].count(); };
  EXPECT_EQ(bytes(MemoryClass::gradient), 4 * 1'456'858);
  EXPECT_EQ(bytes(MemoryClass::optimizer), 4 * 1'456'858);
  EXPECT_EQ(bytes(MemoryClass::model), 4 * 1'456'858 + 4 * 3616 + 64 + 24);  // running statistics, scalars, metrics
  EXPECT_EQ(bytes(MemoryClass::input), 100 * (32 * 32 * 3 + 4));
  EXPECT_EQ(bytes(MemoryClass::workspace), 0);
  EXPECT_EQ(bytes(MemoryClass::activation), 381'403'264);
}

// A change of any pass that moves these must say so, in bytes.
TEST(GoldenPlans, PeaksOfTheReferenceModels) {
  const AcceptingBackend backend;
  const auto peak = [&](const ZooModel& model, std::int64_t batch) {
    return compile(build(model, batch), backend).planned_peak_bytes.count();
  };
  EXPECT_EQ(peak({"small-cnn"}, 100), 17'728'192);
  EXPECT_EQ(peak({"wrn-10-1"}, 8), 5'879'616);
  EXPECT_EQ(peak({"wrn-28-2"}, 100), 399'207'872);
  EXPECT_EQ(peak({"preresnet-110"}, 128), 1'096'541'696);
  EXPECT_EQ(peak({"resnet-18"}, 8), 281'286'912);
  EXPECT_EQ(peak({"resnet-50"}, 8), 957'957'888);
  EXPECT_EQ(peak({"vgg-16"}, 8), 1'979'410'176);
}

// 1,000 layers in under two seconds in a release build; a debug build with checks gets ten times as long. The best of a few tries
// counts, since the machine may be busy with other tests.
TEST(Planning, OfAThousandLayersTakesSeconds) {
#ifdef NDEBUG
  constexpr double kMostSeconds = 2;
#else
  constexpr double kMostSeconds = 20;
#endif
  const AcceptingBackend backend;
  const Program graph = build({"preresnet-1001"}, 8);
  // The processor's time: planning has one thread, and a busy machine does not make it slower in these terms.
  const std::clock_t start = std::clock();
  const Plan plan = compile(graph, backend);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, kMostSeconds);
  fmt::print("preresnet-1001, batch 8: planned in {:.3f} s\n", seconds);
  EXPECT_EQ(find_violation(plan), std::nullopt);
  EXPECT_LE(static_cast<double>(plan.planned_peak_bytes.count()), 1.01 * static_cast<double>(plan.bound_bytes.count()));
}

}  // namespace
}  // namespace snug::testing
