// --json: one object on standard output and nothing else, with the published fields.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"

namespace snug::cli {
namespace {

using Json = nlohmann::ordered_json;

// The whole of standard output as one object; fails on anything before, after or beside it.
Json json_of(const std::vector<std::string>& arguments) {
  const Ended ended = run_snug(arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  Json json = Json::parse(ended.out);
  EXPECT_TRUE(json.is_object());
  return json;
}

void expect_published_fields(const Json& json) {
  for (const char* field : {"model", "precision", "checkpoint"}) EXPECT_TRUE(json.at(field).is_string()) << field;
  for (const char* field : {"batch", "microbatch", "threads", "planned_peak_bytes", "bound_bytes", "gap_bytes", "parameters"}) {
    EXPECT_TRUE(json.at(field).is_number_integer()) << field;
  }
  for (const char* field : {"nonzero", "flops_ratio", "plan_seconds"}) EXPECT_TRUE(json.at(field).is_number_float()) << field;
  EXPECT_TRUE(json.at("budget_bytes").is_null());
  std::int64_t sum = json.at("gap_bytes").get<std::int64_t>();
  for (const char* field : {"model", "gradient", "optimizer", "activation", "workspace", "input"}) {
    sum += json.at("by_class").at(field).get<std::int64_t>();
  }
  EXPECT_EQ(json.at("by_class").size(), 6U);
  EXPECT_EQ(sum, json.at("planned_peak_bytes").get<std::int64_t>());
  EXPECT_LE(json.at("bound_bytes").get<std::int64_t>(), json.at("planned_peak_bytes").get<std::int64_t>());
  EXPECT_GT(json.at("plan_seconds").get<double>(), 0);
  const Json& peak = json.at("peak");
  EXPECT_TRUE(peak.at("section").is_string());
  EXPECT_TRUE(peak.at("node").is_number_integer());
  EXPECT_TRUE(peak.at("layer").is_string());
  for (const Json& value : peak.at("largest")) {
    EXPECT_TRUE(value.at("name").is_string());
    EXPECT_TRUE(value.at("bytes").is_number_integer());
    EXPECT_TRUE(json.at("by_class").contains(value.at("class").get<std::string>()));
  }
  for (const char* field : {"forward", "backward", "recompute", "update"})
    EXPECT_TRUE(json.at("flops").at(field).is_number_integer());
  EXPECT_TRUE(json.at("flops").at("per_image").is_object());
  EXPECT_FALSE(json.at("passes").empty());
  for (const Json& pass : json.at("passes")) {
    EXPECT_TRUE(pass.at("name").is_string());
    EXPECT_TRUE(pass.at("seconds").is_number());
  }
}

TEST(Json, EveryCommandHasTheSameBatchWhereNoneIsGiven) {
  EXPECT_EQ(json_of({"plan", "small-cnn", "--json"}).at("batch"), 100);
  EXPECT_EQ(json_of({"profile", "small-cnn", "--json"}).at("batch"), 100);
  EXPECT_EQ(json_of({"profile", "small-cnn", "--accounting", "paper", "--json"}).at("batch"), 100);
}

TEST(Json, PlanHasThePublishedFields) {
  const Json json = json_of({"plan", "wrn-28-2", "--batch", "100", "--microbatch", "10", "--threads", "2", "--json"});
  expect_published_fields(json);
  EXPECT_EQ(json.at("model"), "wrn-28-2");
  EXPECT_EQ(json.at("batch"), 100);
  EXPECT_EQ(json.at("microbatch"), 10);
  EXPECT_EQ(json.at("threads"), 2);
  EXPECT_EQ(json.at("precision"), "fp32");
  EXPECT_EQ(json.at("checkpoint"), "none");
  EXPECT_EQ(json.at("nonzero"), 1.0);
  EXPECT_EQ(json.at("flops_ratio"), 1.0);
  EXPECT_EQ(json.at("parameters"), 1'456'858);
  EXPECT_FALSE(json.contains("kernels"));
}

TEST(Json, ProfileAddsWhereItGoes) {
  const Json json = json_of({"profile", "wrn-28-2", "--batch", "100", "--accounting", "real", "--json"});
  expect_published_fields(json);
  std::int64_t parameters = 0;
  for (const Json& layer : json.at("layers")) parameters += layer.at("parameters").get<std::int64_t>();
  EXPECT_EQ(parameters, 1'456'858);
  EXPECT_EQ(json.at("moments").size(), 2U);
  EXPECT_EQ(json.at("ops").at(0).at("op"), "conv2d");
  EXPECT_EQ(json.at("ops").at(0).at("nodes"), 25);
}

// The figures of the memory report's network: 429.6 M and 856.2 M, a multiply-add counted as two.
TEST(Json, FlopsOfAnImageAreThoseOfThePaper) {
  for (const char* microbatch : {"100", "10"}) {
    const Json flops = json_of({"plan", "wrn-28-2", "--batch", "100", "--microbatch", microbatch, "--json"}).at("flops");
    const Json& image = flops.at("per_image");
    EXPECT_NEAR(image.at("forward").get<double>(), 429.6e6, 0.005 * 429.6e6);
    EXPECT_NEAR(image.at("backward").get<double>(), 856.2e6, 0.005 * 856.2e6);
    EXPECT_EQ(image.at("recompute"), 0);
    EXPECT_NEAR(flops.at("forward").get<double>(), 100 * image.at("forward").get<double>(), 100);
  }
}

TEST(Json, CheckpointingTakesFewerBytesAndMoreFlops) {
  const auto plan = [](const std::string& strategy) {
    return json_of({"plan", "wrn-28-2", "--batch", "20", "--threads", "2", "--checkpoint", strategy, "--json"});
  };
  const Json plain = plan("none");
  for (const char* strategy : {"no-bn", "sqrt", "residual-2*"}) {
    const Json less = plan(strategy);
    EXPECT_EQ(less.at("checkpoint"), strategy);
    EXPECT_EQ(less.at("microbatch"), 20);
    EXPECT_LT(less.at("planned_peak_bytes"), plain.at("planned_peak_bytes")) << strategy;
    EXPECT_GT(less.at("flops_ratio"), 1.0) << strategy;
    EXPECT_EQ(less.at("flops").at("backward"), plain.at("flops").at("backward")) << strategy;
  }
  EXPECT_EQ(json_of({"profile", "small-cnn", "--batch", "8", "--checkpoint", "every-2", "--json"}).at("checkpoint"), "every-2");
}

TEST(Json, ExplainAddsTheFrontierAndWhatEachMethodDoes) {
  const Json json = json_of({"plan", "small-cnn", "--batch", "40", "--budget", "2MB", "--threads", "1", "--explain", "--json"});
  const Json& frontier = json.at("frontier");
  ASSERT_GE(frontier.size(), 3U);
  bool has_this = false;
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    EXPECT_TRUE(frontier[i].at("checkpoint").is_string());
    EXPECT_TRUE(frontier[i].at("microbatch").is_number_integer());
    if (frontier[i].at("bytes") == json.at("planned_peak_bytes")) has_this = true;
    if (i == 0) continue;
    EXPECT_GT(frontier[i].at("bytes"), frontier[i - 1].at("bytes"));
    EXPECT_LT(frontier[i].at("seconds"), frontier[i - 1].at("seconds"));
  }
  EXPECT_TRUE(has_this);
  EXPECT_GT(json.at("considered").size(), frontier.size());
  EXPECT_EQ(json.at("methods").front().at("bytes"), frontier.back().at("bytes"));
  EXPECT_EQ(json.at("methods").back().at("bytes"), json.at("planned_peak_bytes"));
}

TEST(Json, ARefusalNamesTheSmallestBudget) {
  const std::vector<std::string> asked{"plan", "small-cnn", "--batch", "40", "--threads", "1", "--json", "--budget"};
  const auto with_budget = [&](std::int64_t bytes) {
    std::vector<std::string> words = asked;
    words.push_back(std::to_string(bytes));
    return run_snug(words);
  };
  const Ended refused = with_budget(1000);
  EXPECT_EQ(refused.exit_code, 3);
  const Json json = Json::parse(refused.out);
  EXPECT_EQ(json.at("error").at("code"), 3);
  EXPECT_EQ(json.at("error").at("kind"), "does_not_fit");
  EXPECT_EQ(json.at("error").at("message"), json.at("message"));
  EXPECT_EQ(json.at("error").at("least_bytes"), json.at("smallest_budget_bytes"));
  EXPECT_EQ(json.at("fits"), false);
  EXPECT_EQ("snug: " + json.at("message").get<std::string>() + "\n", refused.err);
  const auto least = json.at("smallest_budget_bytes").get<std::int64_t>();
  EXPECT_EQ(with_budget(least).exit_code, 0);
  EXPECT_EQ(with_budget(least - 1).exit_code, 3);
}

// Whatever is wrong: a command, a flag, a value, a file, a folder.
TEST(Json, BadInputIsAnObjectToo) {
  const std::vector<std::vector<std::string>> asked{{"plan", "no-such-model", "--json"},
                                                    {"plan", "small-cnn", "--json", "--no-such-flag"},
                                                    {"--json", "nothing"},
                                                    {"plan", "small-cnn", "--batch", "0", "--json"},
                                                    {"train", "small-cnn", "--data", "no-such-folder", "--json"},
                                                    {"train", "small-cnn", "--json=yes", "--json"},
                                                    {"eval", "no-such-run", "--json"},
                                                    {"predict", "no-such-run", "a.png", "--json"},
                                                    {"export", "no-such-run", "--json"},
                                                    {"report", "no-such-run", "--json"},
                                                    {"data", "info", "no-such-folder", "--json"}};
  for (const auto& words : asked) {
    SCOPED_TRACE(words[0] + " " + words[1]);
    const Ended ended = run_snug(words);
    EXPECT_EQ(ended.exit_code, 2);
    const Json json = Json::parse(ended.out);
    EXPECT_EQ(json.size(), 1U);
    EXPECT_EQ(json.at("error").at("code"), 2);
    EXPECT_EQ(json.at("error").at("kind"), "bad_input");
    EXPECT_FALSE(json.at("error").contains("least_bytes"));
    EXPECT_EQ("snug: " + json.at("error").at("message").get<std::string>() + "\n", ended.err);
  }
}

TEST(Json, ARefusalWithoutTheFlagPrintsNothing) {
  EXPECT_EQ(run_snug({"plan", "no-such-model"}).out, "");
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "40", "--budget", "1000"}).out, "");
  EXPECT_EQ(run_snug({"plan", "no-such-model", "--", "--json"}).out, "");
}

TEST(Json, KernelsAreListedWhenAskedFor) {
  const Json kernels = json_of({"plan", "small-cnn", "--batch", "8", "--kernels", "--json"}).at("kernels");
  ASSERT_FALSE(kernels.empty());
  for (const Json& use : kernels) {
    EXPECT_FALSE(use.at("kernel").get<std::string>().empty());
    EXPECT_GE(use.at("nodes").get<int>(), 1);
    EXPECT_TRUE(use.at("workspace_bytes").is_number_integer());
    EXPECT_TRUE(use.at("refusals").is_array());
  }
}

TEST(Json, TheTimelineIsThereWhenAskedFor) {
  const Json json = json_of({"plan", "small-cnn", "--batch", "8", "--json", "--timeline"});
  expect_published_fields(json);
  EXPECT_EQ(json.at("timeline").at("sections").at(0).at("section"), "micro");
  EXPECT_FALSE(json_of({"plan", "small-cnn", "--batch", "8", "--json"}).contains("timeline"));
}

TEST(Json, FrozenParametersTakeNoGradientAndNoMomentum) {
  const Json json = json_of({"plan", "small-cnn", "--batch", "8", "--freeze", "conv", "--freeze", "bn", "--json"});
  EXPECT_EQ(json.at("trainable_parameters"), 650);
  EXPECT_EQ(json.at("by_class").at("gradient"), 4 * 650);
  EXPECT_EQ(json.at("by_class").at("optimizer"), 4 * 650);
}

TEST(Json, ADisabledPassDoesNotRun) {
  const Json with = json_of({"plan", "small-cnn", "--batch", "8", "--json"});
  const Json without = json_of({"plan", "small-cnn", "--batch", "8", "--disable-pass", "share_bytes", "--json"});
  for (const Json& pass : without.at("passes")) EXPECT_NE(pass.at("name"), "share_bytes");
  EXPECT_GT(without.at("planned_peak_bytes").get<std::int64_t>(), with.at("planned_peak_bytes").get<std::int64_t>());
}

TEST(Json, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(json_of({"plan", "small-cnn", "--batch", "8", "--batch", "16", "--json"}).at("batch"), 16);
}

TEST(Json, ClassesAndImageSizeChangeTheModel) {
  const Json json = json_of({"plan", "small-cnn", "--batch", "8", "--classes", "100", "--image-size", "64", "--json"});
  EXPECT_EQ(json.at("parameters"), 24'346 - 650 + 65 * 100);
  EXPECT_EQ(json.at("by_class").at("input"), 8 * (3 * 64 * 64 + 4));
}

}  // namespace
}  // namespace snug::cli
