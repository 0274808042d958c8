#include "report/json.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tiny_plan.h"

namespace snug::report {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t sum_of(const Json& numbers) {
  std::int64_t sum = 0;
  for (const auto& number : numbers) sum += number.get<std::int64_t>();
  return sum;
}

TEST(PlanJson, HasThePublishedFieldsWithTheirTypes) {
  const Json json = plan_json(tiny_plan(), {.threads = 3});
  EXPECT_EQ(json.at("model"), "tiny");
  EXPECT_EQ(json.at("batch"), 8);
  EXPECT_EQ(json.at("microbatch"), 4);
  EXPECT_EQ(json.at("precision"), "fp32");
  EXPECT_TRUE(json.at("nonzero").is_number_float());
  EXPECT_EQ(json.at("nonzero"), 1.0);
  EXPECT_EQ(json.at("checkpoint"), "none");
  EXPECT_TRUE(json.at("budget_bytes").is_null());
  EXPECT_EQ(json.at("threads"), 3);
  EXPECT_EQ(json.at("parameters"), 208);
  EXPECT_EQ(json.at("trainable_parameters"), 80);
  EXPECT_TRUE(json.at("flops_ratio").is_number_float());
  EXPECT_EQ(json.at("flops_ratio"), 1.0);
  EXPECT_TRUE(json.at("plan_seconds").is_number_float());
  EXPECT_TRUE(json.at("passes").is_array());
  for (const char* phase : {"forward", "backward", "recompute", "update"}) {
    EXPECT_TRUE(json.at("flops").at(phase).is_number_integer()) << phase;
  }
  for (const char* phase : {"forward", "backward", "recompute"}) {
    EXPECT_TRUE(json.at("flops").at("per_image").at(phase).is_number_integer()) << phase;
  }
}

TEST(PlanJson, LeavesOutWhatOnlyARunCanKnow) {
  const Json json = plan_json(tiny_plan(), {});
  for (const char* field :
       {"measured_peak_bytes", "images_per_second", "process_overhead_bytes", "train_loss", "test_accuracy"}) {
    EXPECT_FALSE(json.contains(field)) << field;
  }
}

TEST(PlanJson, ClassesAndGapSumToThePeak) {
  const Plan plan = tiny_plan();
  const Json json = plan_json(plan, {});
  std::vector<std::string> classes;
  for (const auto& [name, bytes] : json.at("by_class").items()) classes.push_back(name);
  EXPECT_EQ(classes, (std::vector<std::string>{"model", "gradient", "optimizer", "activation", "workspace", "input"}));
  EXPECT_EQ(sum_of(json.at("by_class")) + json.at("gap_bytes").get<std::int64_t>(),
            json.at("planned_peak_bytes").get<std::int64_t>());
  EXPECT_EQ(json.at("planned_peak_bytes"), plan.planned_peak_bytes.count());
  EXPECT_EQ(json.at("persistent_bytes"), plan.persistent_bytes.count());
  EXPECT_LE(json.at("bound_bytes").get<std::int64_t>(), json.at("planned_peak_bytes").get<std::int64_t>());
}

TEST(PlanJson, NamesTheFullestMoment) {
  const Json peak = plan_json(tiny_plan(), {}).at("peak");
  EXPECT_EQ(peak.at("section"), "micro");
  EXPECT_EQ(peak.at("node"), 6);
  EXPECT_EQ(peak.at("layer"), "head.fc");
  EXPECT_EQ(peak.at("largest").at(0), (Json{{"name", "ws"}, {"bytes", 1000}, {"class", "workspace"}}));
  EXPECT_EQ(peak.at("largest").at(1), (Json{{"name", "body.one.fc.weight"}, {"bytes", 512}, {"class", "model"}}));
  EXPECT_EQ(peak.at("largest").size(), 10U);
}

TEST(PlanJson, GivesTheBudgetAndThePassesTheirNumbers) {
  Plan plan = tiny_plan();
  plan.pass_timings = {{"share_bytes", 0.25}};
  plan.plan_seconds = 0.5;
  const Json json = plan_json(plan, {.budget = Bytes(6'700'000)});
  EXPECT_EQ(json.at("budget_bytes"), 6'700'000);
  EXPECT_EQ(json.at("plan_seconds"), 0.5);
  EXPECT_EQ(json.at("passes"), (Json::array({{{"name", "share_bytes"}, {"seconds", 0.25}}})));
}

TEST(PlanJson, AProgramWithoutNodesIsReportedToo) {
  const Json json = plan_json(plan_of("program empty batch 1 microbatch 1\nstate x : f32[10] input\nsection micro\n"), {});
  EXPECT_EQ(json.at("planned_peak_bytes"), 40);
  EXPECT_EQ(json.at("peak").at("layer"), "");
  EXPECT_EQ(json.at("flops_ratio"), 1.0);
}

TEST(ProfileJson, AddsLayersMomentsAndOps) {
  const Plan plan = tiny_plan();
  const Json json = profile_json(plan, {});
  const Json of_plan = plan_json(plan, {});
  for (const auto& [name, value] : of_plan.items()) EXPECT_TRUE(json.contains(name)) << name;

  std::int64_t layer_bytes = 0;
  std::int64_t parameters = 0;
  for (const auto& layer : json.at("layers")) {
    EXPECT_EQ(sum_of(layer.at("by_class")), layer.at("peak_bytes").get<std::int64_t>());
    layer_bytes += layer.at("peak_bytes").get<std::int64_t>();
    parameters += layer.at("parameters").get<std::int64_t>();
  }
  EXPECT_EQ(layer_bytes, sum_of(json.at("by_class")));
  EXPECT_EQ(parameters, 208);

  const Json& micro = json.at("moments").at(0);
  EXPECT_EQ(micro.at("section"), "micro");
  EXPECT_EQ(micro.at("live_bytes").size(), 10U);
  EXPECT_EQ(*std::max_element(micro.at("live_bytes").begin(), micro.at("live_bytes").end()), sum_of(json.at("by_class")));
  EXPECT_EQ(micro.at("by_class").at("workspace").at(6), 1000);
  EXPECT_EQ(json.at("moments").at(1).at("section"), "update");

  std::int64_t flops = 0;
  for (const auto& op : json.at("ops")) flops += op.at("flops").get<std::int64_t>();
  const Json& by_phase = json.at("flops");
  EXPECT_EQ(flops, by_phase.at("forward").get<std::int64_t>() + by_phase.at("backward").get<std::int64_t>() +
                       by_phase.at("update").get<std::int64_t>());
  EXPECT_EQ(json.at("ops").at(0), (Json{{"op", "linear"}, {"phase", "forward"}, {"nodes", 2}, {"flops", 3072}}));
}

TEST(KernelsJson, GivesEveryUse) {
  const std::vector<KernelUse> uses{{.op = "relu",
                                     .kernel = "plain_relu",
                                     .nodes = 2,
                                     .workspace = Bytes(64),
                                     .sections = {SectionKind::micro, SectionKind::eval},
                                     .refusals = {{.reason = "fast_relu: no", .nodes = 1}}}};
  const Json refusals = Json::array({{{"reason", "fast_relu: no"}, {"nodes", 1}}});
  EXPECT_EQ(kernels_json(uses), (Json::array({{{"op", "relu"},
                                               {"kernel", "plain_relu"},
                                               {"is_reference", false},
                                               {"nodes", 2},
                                               {"workspace_bytes", 64},
                                               {"sections", {"micro", "eval"}},
                                               {"refusals", refusals}}})));
}

}  // namespace
}  // namespace snug::report
