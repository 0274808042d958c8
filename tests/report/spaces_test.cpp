// What reports show of a plan in two memories: the device's arena as if it were alone, and host memory as one figure.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "report/json.h"
#include "report/layers.h"
#include "report/moments.h"
#include "report/timeline.h"

namespace snug::report {
namespace {

Plan two_memories() {
  return place(
      parse_program("program two batch 1 microbatch 1\n"
                    "state x : f32[64] input\n"
                    "state h : f32[1024] statistic host\n"
                    "section micro\n"
                    "  %a = relu(x@0) : f32[64] activation ; forward a\n"
                    "  %kept = copy_to_space(%a) {host=1} : f32[64] activation host ; forward a\n"
                    "  %b = relu(%a) : f32[64] activation ; forward b\n"
                    "  %back = copy_to_space(%kept) {host=0} : f32[64] activation ; backward a\n"
                    "  %c = add(%b, %back) : f32[64] activation ; backward b\n",
                    ops::find));
}

TEST(SpacesInReports, OnlyTheDeviceIsDrawn) {
  const Plan plan = two_memories();
  ASSERT_EQ(plan.planned_peak_bytes, Bytes(4 * 256));
  Bytes fullest;
  const std::vector<SectionMoments> step = moments_of_step(plan);
  for (const ByClass& alive : step.front().alive) fullest = std::max(fullest, total_of(alive));
  EXPECT_EQ(fullest, plan.planned_peak_bytes);

  Bytes of_layers;
  for (const LayerUse& layer : layers_at_peak(plan, peak_moment(plan))) of_layers += total_of(layer.at_peak);
  EXPECT_EQ(of_layers, plan.planned_peak_bytes);

  const nlohmann::ordered_json timeline = timeline_json(plan);
  EXPECT_EQ(timeline.at("states").at("place").size(), 1U);
  EXPECT_EQ(timeline.at("sections").at(0).at("values").at("place").size(), 4U);
  for (const auto& place : timeline.at("places")) EXPECT_LT(place.get<std::int64_t>(), plan.planned_peak_bytes.count());
}

TEST(SpacesInReports, HostMemoryIsAFigureWhereThereIsAny) {
  const Plan plan = two_memories();
  EXPECT_EQ(plan_json(plan, {}).at("planned_host_bytes"), 4096 + 256);
  const Plan device_alone = place(parse_program("program one batch 1 microbatch 1\nstate x : f32[64] input\n", ops::find));
  EXPECT_FALSE(plan_json(device_alone, {}).contains("planned_host_bytes"));
}

}  // namespace
}  // namespace snug::report
