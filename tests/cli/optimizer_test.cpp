// --optimizer: what a plan takes, and that plans, recipes and flags agree on it.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/files.h"
#include "support/messages.h"

namespace snug::cli {

using support::bytes_of;
using support::TemporaryFolder;

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kModel{"small-cnn", "--batch", "20", "--threads", "1", "--data", "embedded"};

std::string run(const Words& words, int exit_code = 0) {
  const Ended ended = run_snug(words);
  EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
  return exit_code == 0 ? ended.out : ended.err;
}

TEST(OptimizerFlag, AdamwKeepsTwoMomentsOfEveryParameter) {
  const auto bytes = [](const Words& flags) {
    return Json::parse(run(Words{"plan"} + kModel + flags + Words{"--json"})).at("by_class");
  };
  const Json sgd = bytes({}), adamw = bytes({"--optimizer", "adamw"});
  EXPECT_EQ(bytes({"--optimizer", "sgd"}), sgd);
  const auto parameters = sgd.at("gradient").get<std::int64_t>();
  EXPECT_EQ(sgd.at("optimizer"), parameters);
  EXPECT_EQ(adamw.at("optimizer"), 2 * parameters + 8) << "and the count of updates";
  // Two convolutions of 4,608 and 18,432 weights, with two scales each; the first and the classifier have fewer than 4,096.
  EXPECT_EQ(bytes({"--optimizer", "adamw", "--moment-bits", "16"}).at("optimizer"), 2 * parameters + 8 - 4 * (4608 + 18432) + 16);
  // Codes of both moments, and two scales for each of 18 and 72 blocks.
  EXPECT_EQ(bytes({"--optimizer", "adamw", "--moment-bits", "8"}).at("optimizer"),
            2 * parameters + 8 - 6 * (4608 + 18432) + 8 * (18 + 72));
  EXPECT_EQ(bytes({"--optimizer", "adamw", "--precision", "bf16", "--moment-bits", "16"}),
            bytes({"--optimizer", "adamw", "--precision", "bf16"}));
  EXPECT_GT(bytes({"--optimizer", "adamw", "--precision", "bf16", "--moment-bits", "32"}).at("optimizer"),
            bytes({"--optimizer", "adamw", "--precision", "bf16"}).at("optimizer"));
}

TEST(OptimizerFlag, APlanOnFileIsForItsOptimizer) {
  const TemporaryFolder folder;
  const std::string plan = (folder / "adamw.plan").string();
  const Words adamw{"--optimizer", "adamw", "--moment-bits", "16"};
  run(Words{"plan"} + kModel + adamw + Words{"--save", plan});
  const Words train = Words{"train"} + kModel + Words{"--steps", "1", "--plan", plan, "--out"};
  const std::string other = run(train + Words{(folder / "other").string()}, 2);
  EXPECT_TRUE(support::mentions(other, {plan, "--moment-bits", "setting", "--optimizer"}));
  run(train + Words{(folder / "run").string(), "--optimizer", "adamw"});
  EXPECT_NE(bytes_of(folder / "run" / "recipe.toml").find("moment_bits = 16"), std::string::npos) << "the plan says so";
  EXPECT_TRUE(support::mentions(run(train + Words{(folder / "wide").string(), "--optimizer", "adamw", "--moment-bits", "32"}, 2),
                                {"--moment-bits", "16", "again"}));
}

TEST(OptimizerFlag, GoesBesideARecipeOfAnotherOptimizer) {
  const TemporaryFolder folder;
  const std::string path = (folder / "recipe.toml").string();
  // As versions without a choice wrote it.
  std::ofstream(path) << "model = \"small-cnn\"\ndata = \"embedded\"\nbatch = 20\nthreads = 1\nsteps = 2\n[optimizer]\n"
                         "learning_rate = 0.1\nmomentum = 0.9\nnesterov = true\nweight_decay = 0.0005\nclip_norm = 1.0\n";
  run({"train", path, "--optimizer", "adamw", "--beta2", "0.95", "--schedule", "linear", "--out", (folder / "run").string()});
  const std::string recipe = bytes_of(folder / "run" / "recipe.toml");
  for (const char* line : {"kind = \"adamw\"", "learning_rate = 0.0003", "beta2 = 0.95", "weight_decay = 0.01", "clip_norm = 1",
                           "kind = \"linear\""})
    EXPECT_NE(recipe.find(line), std::string::npos) << line << "\n" << recipe;
  EXPECT_EQ(recipe.find("momentum"), std::string::npos) << recipe;
}

}  // namespace

}  // namespace snug::cli
