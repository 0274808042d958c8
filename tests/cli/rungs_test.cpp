// How far a plan goes for a budget, as a user lets it: 16 bits, then part of the weights.
#include <fstream>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;
using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json json_of(const Words& arguments) {
  const Ended ended = run_snug(arguments + Words{"--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out, nullptr, false);
}

// The number of bytes that a refusal names.
std::int64_t least_of(const Words& arguments) {
  const Ended ended = run_snug(arguments + Words{"--budget", "1KB"});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  std::smatch found;
  EXPECT_TRUE(std::regex_search(ended.err, found, std::regex(" is ([0-9]+) bytes"))) << ended.err;
  return found.empty() ? 0 : std::stoll(found[1]);
}

bool has_method(const Json& json, const std::string& method) {
  for (const Json& step : json.at("methods")) {
    if (step.at("method") == method) return true;
  }
  return false;
}

const Words kPlan{"plan", "wrn-10-1", "--batch", "20", "--threads", "1", "--data", "embedded"};

TEST(Rungs, SparsityIsTakenBelowTheSmallestDensePlanAndSeenEverywhere) {
  const std::int64_t budget = least_of(kPlan + Words{"--allow", "precision"}) - 1;
  const Words within{"--allow", "precision,sparse", "--budget", std::to_string(budget) + "B"};
  const Json planned = json_of(kPlan + within + Words{"--explain"});
  EXPECT_LE(planned.at("planned_peak_bytes").get<std::int64_t>(), budget);
  EXPECT_EQ(planned.at("precision"), "bf16");
  EXPECT_EQ(planned.at("nonzero"), 0.5);
  EXPECT_EQ(planned.at("frontier")[0].at("nonzero"), 0.5);
  EXPECT_EQ(planned.at("frontier").back().at("nonzero"), nullptr);
  EXPECT_TRUE(has_method(planned, "stored with 16 bits")) << planned.at("methods");
  EXPECT_TRUE(has_method(planned, "50% of the convolutions' weights")) << planned.at("methods");
  EXPECT_NE(run_snug(kPlan + within + Words{"--explain"}).out.find("50% nonzero, 16 bits, "), std::string::npos);

  // Training takes the same plan, rewires, and its folder and report say what was chosen.
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  const Json trained =
      json_of(Words{"train", "wrn-10-1", "--batch", "20", "--threads", "1", "--steps", "2", "--out", run} + within);
  EXPECT_EQ(trained.at("nonzero"), 0.5);
  EXPECT_EQ(trained.at("precision"), "bf16");
  EXPECT_EQ(trained.at("planned_peak_bytes"), planned.at("planned_peak_bytes"));
  EXPECT_EQ(trained.at("measured_peak_bytes"), trained.at("planned_peak_bytes"));
  const std::string recipe = text_of(folder / "run" / "recipe.toml");
  EXPECT_NE(recipe.find("nonzero = 0.5"), std::string::npos) << recipe;
  const Json report = json_of({"report", run});
  EXPECT_EQ(report.at("nonzero"), 0.5);
  EXPECT_TRUE(has_method(report, "50% of the convolutions' weights")) << report.at("methods");
  EXPECT_TRUE(has_method(report, "stored with 16 bits")) << report.at("methods");
}

// A plan on file says by itself which form of the model it is of, whether that was given or chosen.
TEST(Rungs, AFormThatWasPlannedIsTrainedFromItsFile) {
  const TemporaryFolder folder;
  const Words model{"small-cnn", "--batch", "20", "--threads", "1"};
  const std::int64_t budget = least_of(Words{"plan"} + model + Words{"--allow", "precision"}) - 1;
  const std::vector<Words> forms{{"--budget", std::to_string(budget) + "B", "--allow", "precision,sparse"},
                                 {"--precision", "fp16", "--nonzero", "0.3"},
                                 {"--momentum-bits", "8"}};
  const auto run_of = [&](std::size_t i) { return (folder / ("run" + std::to_string(i))).string(); };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const std::string file = (folder / ("plan" + std::to_string(i))).string();
    const Json planned = json_of(Words{"plan"} + model + forms[i] + Words{"--save", file});
    const Json trained = json_of(Words{"train"} + model + Words{"--steps", "2", "--plan", file, "--out", run_of(i)});
    for (const char* key : {"precision", "nonzero", "planned_peak_bytes"}) EXPECT_EQ(trained.at(key), planned.at(key)) << i;
    EXPECT_EQ(trained.at("measured_peak_bytes"), trained.at("planned_peak_bytes"));
  }
  EXPECT_NE(text_of(folder / "run0" / "recipe.toml").find("precision = \"bf16\""), std::string::npos);
  EXPECT_NE(text_of(folder / "run1" / "recipe.toml").find("nonzero = 0.3"), std::string::npos);
  EXPECT_NE(text_of(folder / "run2" / "recipe.toml").find("momentum_bits = 8"), std::string::npos);
  // So does the plan in a run's folder.
  const std::string plan = run_of(1) + "/plan.txt";
  const Words again = Words{"train"} + model + Words{"--steps", "1", "--plan", plan, "--out", run_of(3)};
  EXPECT_TRUE(support::mentions(run_snug(again + Words{"--precision", "bf16"}).err, {plan, "--precision", "fp16", "again"}));
  EXPECT_TRUE(support::mentions(run_snug(again + Words{"--nonzero", "1"}).err, {plan, "--nonzero", "0.3", "again"}));
  EXPECT_TRUE(support::mentions(run_snug(again + Words{"--momentum-bits", "8"}).err, {plan, "--momentum-bits", "again"}));
  EXPECT_EQ(json_of(again + Words{"--precision", "fp16"}).at("nonzero"), 0.3);
}

TEST(Rungs, SparsityThatIsChosenIsRewiredAsAnyOther) {
  const TemporaryFolder folder;
  const std::int64_t budget = least_of(Words{"plan", "small-cnn", "--batch", "20", "--threads", "1", "--data", "embedded"}) - 1;
  const auto path = folder / "recipe.toml";
  std::ofstream(path) << "model = \"small-cnn\"\nbatch = 20\nthreads = 1\nsteps = 101\nallow = [\"sparse\"]\nbudget = \""
                      << budget << "B\"\n";
  const Json trained = json_of({"train", path.string(), "--out", (folder / "run").string()});
  EXPECT_EQ(trained.at("nonzero"), 0.5);
  const std::string lines = text_of(folder / "run" / "metrics.jsonl");
  EXPECT_NE(lines.find("nonzeros"), std::string::npos) << "the default schedule rewires after 100 steps";
}

TEST(Rungs, WideResidualNetworkInTheReportsSmallestBudget) {
  const Json json = json_of({"plan", "wrn-28-2", "--batch", "100", "--budget", "6.7MB", "--allow", "precision,sparse", "--costs",
                             "none", "--threads", "2"});
  EXPECT_LE(json.at("planned_peak_bytes").get<std::int64_t>(), 6'700'000);
  EXPECT_EQ(json.at("precision"), "bf16");
  EXPECT_GE(json.at("nonzero").get<double>(), 0.2);  // 0.3 where oneDNN needs no more workspace than on AVX-512
  EXPECT_LT(json.at("nonzero").get<double>(), 1);
}

TEST(Rungs, WhatIsGivenIsObeyed) {
  const std::int64_t budget = least_of(kPlan) - 1;
  const Words small{"--budget", std::to_string(budget) + "B"};
  EXPECT_EQ(run_snug(kPlan + small + Words{"--nonzero", "1", "--allow", "sparse"}).exit_code, 3);
  EXPECT_EQ(run_snug(kPlan + small + Words{"--precision", "fp32", "--allow", "precision"}).exit_code, 3);
  const TemporaryFolder folder;
  const auto path = folder / "recipe.toml";
  std::ofstream(path) << "model = \"wrn-10-1\"\nbatch = 20\nthreads = 1\nallow = [\"sparse\"]\n[sparse]\nnonzero = 1.0\n";
  EXPECT_EQ(run_snug(Words{"plan", path.string(), "--data", "embedded"} + small).exit_code, 3);
  EXPECT_EQ(json_of(kPlan + small + Words{"--nonzero", "0.25", "--allow", "sparse"}).at("nonzero"), 0.25);
}

// A run's folder tells what was given from what was chosen.
TEST(Rungs, WhatARecipeGivesIsNotExplainedAsAChoice) {
  const TemporaryFolder folder;
  const auto path = folder / "recipe.toml";
  std::ofstream(path) << "model = \"small-cnn\"\nbatch = 20\nthreads = 1\nsteps = 1\nprecision = \"bf16\"\n"
                      << "budget = \"100MB\"\nallow = [\"precision\", \"sparse\"]\n[sparse]\nnonzero = 0.5\n";
  const std::string run = (folder / "run").string();
  EXPECT_EQ(run_snug({"train", path.string(), "--out", run}).exit_code, 0);
  const Json report = json_of({"report", run});
  EXPECT_FALSE(has_method(report, "stored with 16 bits")) << report.at("methods");
  EXPECT_FALSE(has_method(report, "50% of the convolutions' weights")) << report.at("methods");
}

// Which rungs are beaten by others depends on how fast the processor multiplies 16 bits; held to AVX2, all do it alike.
TEST(Rungs, ARefusalNamesThoseThatWouldHelp) {
  const Ended ended = run_snug(kPlan + Words{"--budget", "1KB"}, [] { setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1); });
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_TRUE(std::regex_search(ended.err, std::regex("or add precision \\(about [0-9.]+ [MK]B\\) to --allow "
                                                      "\\(about [0-9.]+ [MK]B with sparse too\\)")))
      << ended.err;
}

TEST(Rungs, ARefusalAdvisesNothingThatAFlagRulesOut) {
  const Words small{"small-cnn", "--batch", "32", "--threads", "1", "--budget", "1KB"};
  for (const std::string command : {"plan", "train"}) {
    const Ended precision = run_snug(Words{command} + small + Words{"--precision", "fp32", "--allow", "precision"});
    EXPECT_EQ(precision.exit_code, 3);
    EXPECT_EQ(precision.err.find("precision"), std::string::npos) << precision.err;
    EXPECT_NE(precision.err.find("sparse (about"), std::string::npos) << precision.err;
  }
  const Ended share = run_snug(Words{"plan"} + small + Words{"--nonzero", "1"});
  EXPECT_EQ(share.err.find("sparse"), std::string::npos) << share.err;
  EXPECT_NE(share.err.find("precision"), std::string::npos) << share.err;
}

// 'snug plan' is given the recipe that 'snug train' is, so what it says is what training takes.
TEST(Plan, TakesEveryFlagOfTrainThatMattersForMemory) {
  const TemporaryFolder folder;
  std::set<std::int64_t> different;
  int number = 0;
  for (const Words& flags : std::vector<Words>{{},
                                               {"--clip-norm", "1"},
                                               {"--momentum", "0", "--nesterov", "no"},
                                               {"--momentum-bits", "8"},
                                               {"--nesterov", "no", "--drop-gradients"},
                                               {"--nonzero", "0.5"},
                                               {"--precision", "fp16"},
                                               {"--compress", "4"},
                                               {"--microbatch", "5", "--checkpoint", "sqrt"},
                                               {"--device", "cpu", "--classes", "12", "--image-size", "32"}}) {
    const Words both = Words{"small-cnn", "--batch", "20", "--threads", "1", "--data", "embedded"} + flags;
    const Json planned = json_of(Words{"plan"} + both);
    const Json trained =
        json_of(Words{"train"} + both + Words{"--steps", "1", "--out", (folder / std::to_string(number++)).string()});
    EXPECT_EQ(planned.at("planned_peak_bytes"), trained.at("planned_peak_bytes")) << number;
    different.insert(planned.at("planned_peak_bytes").get<std::int64_t>());
  }
  EXPECT_GE(different.size(), 9U);
}

TEST(Plan, TakesARecipe) {
  const TemporaryFolder folder;
  const auto path = folder / "recipe.toml";
  std::ofstream(path) << "model = \"small-cnn\"\ndata = \"embedded\"\nbatch = 20\nthreads = 1\n[optimizer]\nclip_norm = 1.0\n";
  const Json planned = json_of({"plan", path.string()});
  EXPECT_EQ(planned.at("batch"), 20);
  EXPECT_EQ(planned.at("planned_peak_bytes"),
            json_of({"plan", "small-cnn", "--batch", "20", "--threads", "1", "--data", "embedded", "--clip-norm", "1"})
                .at("planned_peak_bytes"));
}

// Augmented images and the data's own shape take other bytes than random ones of the model's shape would.
TEST(Plan, IsMadeForTheDataOfARecipe) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& data) {
    const std::string path = (folder / name).string();
    std::ofstream(path) << "model = \"resnet-18\"\nbatch = 2\nthreads = 1\nsteps = 1\n"
                        << data << "[optimizer]\nlearning_rate = 1e-6\n";
    return path;
  };
  const std::string embedded = write("embedded.toml", "data = \"embedded\"\n");
  const Json planned = json_of({"plan", embedded});
  EXPECT_EQ(planned.at("planned_peak_bytes"),
            json_of({"train", embedded, "--out", (folder / "run").string()}).at("planned_peak_bytes"));
  EXPECT_EQ(json_of({"plan", write("default.toml", "")}).at("planned_peak_bytes"), planned.at("planned_peak_bytes"));
  EXPECT_NE(json_of({"plan", "resnet-18", "--batch", "2", "--threads", "1"}).at("planned_peak_bytes"),
            planned.at("planned_peak_bytes"));
  const std::string nowhere = write("nowhere.toml", "data = \"/nowhere/at/all\"\n");
  const Ended refused = run_snug({"plan", nowhere});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, run_snug({"plan", "resnet-18", "--batch", "2", "--data", "/nowhere/at/all"}).err);
  EXPECT_NE(refused.err.find("/nowhere/at/all"), std::string::npos) << refused.err;
  EXPECT_EQ(run_snug({"plan", nowhere, "--data", "embedded"}).exit_code, 0);
}

// What does not combine is refused by name: all of it.
TEST(Refused, WhatDoesNotCombine) {
  const Words plan{"plan", "small-cnn", "--batch", "8", "--threads", "1"};
  const std::string fused = "snug: pass 'fuse_update' makes each update during backward, but ";
  const std::string dropped = "snug: pass 'drop_gradients' adds gradients to the momentum, but ";
  const std::vector<std::pair<Words, std::string>> refused{
      {{"--disable-pass", "compress_activations", "--compress", "4"},
       "snug: pass 'compress_activations' is left out and asked for; leave out one of the two\n"},
      {{"--disable-pass", "checkpoint", "--checkpoint", "sqrt"},
       "snug: pass 'checkpoint' is left out and asked for; leave out one of the two\n"},
      {{"--disable-pass", "drop_gradients", "--nesterov", "no", "--drop-gradients"},
       "snug: pass 'drop_gradients' is left out and asked for; leave out one of the two\n"},
      {{"--fuse-update", "yes", "--clip-norm", "1"},
       fused + "clipping needs the norm of all gradients before it; leave out one of the two\n"},
      {{"--fuse-update", "yes", "--precision", "fp16"},
       fused + "dynamic loss scaling looks at all gradients before it; use fp32 or bf16, or leave out the pass\n"},
      {{"--fuse-update", "yes", "--microbatch", "4"},
       fused + "a step adds up the gradients of 2 microbatches before it; give the whole batch one microbatch of 8\n"},
      {{"--fuse-update", "yes", "--microbatch", "4", "--nesterov", "no"},
       fused + "a step adds up the gradients of 2 microbatches before it; give the whole batch one microbatch of 8\n"},
      {{"--fuse-update", "yes", "--drop-gradients", "--nesterov", "no"},
       fused + "drop_gradients has taken the gradients' accumulators away already; leave out one of the two\n"},
      {{"--drop-gradients", "--nesterov", "no", "--clip-norm", "1"},
       dropped + "clipping needs the norm of all gradients by themselves; leave out one of the two\n"},
      {{"--drop-gradients", "--nesterov", "no", "--precision", "fp16"},
       dropped + "dynamic loss scaling looks at all gradients before they count; use fp32 or bf16, or leave out the pass\n"},
      {{"--drop-gradients", "--microbatch", "4"},
       dropped + "Nesterov's step needs the gradient beside the momentum; say nesterov = false, --nesterov no\n"},
      {{"--drop-gradients"},
       dropped + "Nesterov's step needs the gradient beside the momentum; say nesterov = false, --nesterov no\n"},
      {{"--drop-gradients", "--nesterov", "no", "--momentum", "0"},
       dropped + "without a momentum there is nothing to add them to; set one\n"},
      {{"--drop-gradients", "--nesterov", "no", "--momentum-bits", "8"},
       dropped + "a momentum in 8 bits would be rounded at every addition; leave out one of the two\n"}};
  for (const auto& [flags, sentence] : refused) {
    const Ended ended = run_snug(plan + flags);
    EXPECT_EQ(ended.exit_code, 2) << sentence;
    EXPECT_EQ(ended.err, sentence);
  }
}

}  // namespace
}  // namespace snug::cli
