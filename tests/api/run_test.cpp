// Runs from the installed API: what the command does, without the command.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"
#include <snug/snug.h>

namespace snug {

namespace {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;

Recipe short_recipe() {
  Recipe recipe("small-cnn");
  recipe.set("batch", "100").set("budget", "3MB").set("steps", "6").set("threads", "1");
  return recipe;
}

TEST(Recipe, SaysWhatWasSet) {
  const std::string toml = short_recipe().set("sparse.nonzero", "0.5").set_each("freeze", {"conv1", "bn1"}).toml();
  for (const char* line : {"model = \"small-cnn\"", "batch = 100", "budget = \"3MB\"", "steps = 6", "nonzero = 0.5",
                           "freeze = [\"conv1\", \"bn1\"]"}) {
    EXPECT_NE(toml.find(line), std::string::npos) << line << "\n" << toml;
  }
  EXPECT_EQ(Recipe::parse(toml).toml(), toml);
}

TEST(Recipe, WhatCannotBeSetIsRefusedByItsKey) {
  const auto refusal = [](const std::string& key, const std::string& value) {
    return message_of<UserError>([&] { Recipe("small-cnn").set(key, value); });
  };
  EXPECT_TRUE(support::mentions(refusal("batch_size", "3"), {"key", "'batch_size'"}));
  EXPECT_TRUE(support::mentions(refusal("model", "vgg-16"), {"key", "'model'"}));
  EXPECT_TRUE(support::mentions(refusal("precision", "fp8"), {"precision", "'fp8'", "fp32", "fp16", "bf16"}));
  EXPECT_TRUE(support::mentions(refusal("optimizer.momentum", "2"), {"optimizer.momentum", "0", "1", "'2'"}));
  EXPECT_TRUE(
      support::mentions(message_of<UserError>([] { Recipe("small-cnn").set("microbatch", "20").set("batch", "10").toml(); }),
                        {"microbatch", "20", "10"}));
}

TEST(Recipe, SwitchesListsAndTheLaterOfTwoLengthsAreTaken) {
  Recipe recipe("small-cnn");
  recipe.set("optimizer.drop_gradients", "no").set("sparse.nonzero", "0.5").set("sparse.rewire_every", "10,20");
  recipe.set("sparse.rewire_milestones", "3").set("epochs", "4").set("steps", "7");
  const std::string toml = recipe.toml();
  EXPECT_NE(toml.find("rewire_every = [10, 20]"), std::string::npos) << toml;
  EXPECT_NE(toml.find("steps = 7"), std::string::npos) << toml;
  EXPECT_EQ(toml.find("drop_gradients = true"), std::string::npos) << toml;
  Recipe moved = std::move(recipe);
  recipe = moved;
  EXPECT_EQ(recipe.toml(), toml);
}

TEST(Run, TrainsInsideItsBudgetAndSaysWhatHappens) {
  const TemporaryFolder folder;
  snug::Run run = snug::Run::begin(short_recipe(), {.folder = (folder.path() / "run").string(), .costs = "none"});
  EXPECT_LE(run.memory().planned_peak_bytes, 3'000'000);
  EXPECT_GT(run.memory().plain_peak_bytes, 3'000'000);
  EXPECT_EQ(run.total_steps(), 6U);
  int steps = 0, evaluations = 0, snapshots = 0;
  const RunResult result = run.train({.on_step = [&](const RunStep& step) { steps += step.total_steps == 6 ? 1 : 0; },
                                      .on_evaluation = [&](const RunEvaluation&) { ++evaluations; },
                                      .on_snapshot = [&](std::uint64_t, const std::string&) { ++snapshots; }});
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(evaluations, 1);
  EXPECT_GE(snapshots, 1);
  EXPECT_EQ(result.steps, 6U);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.measured_peak_bytes, run.memory().planned_peak_bytes);
  ASSERT_TRUE(result.test_score);
  EXPECT_GT(*result.test_score, 0);
  EXPECT_NE(run.recipe_toml().find("checkpoint = "), std::string::npos) << "what the solver chose is written down";
}

TEST(Run, StoppedAndResumedGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  const auto weights_of = [&](const std::string& snapshot) { return bytes_of(snapshot); };
  snug::Run whole = snug::Run::begin(short_recipe(), {.folder = (folder.path() / "whole").string(), .costs = "none"});
  const std::string expected = weights_of(whole.train().last_snapshot);

  const std::string path = (folder.path() / "parts").string();
  {
    snug::Run run = snug::Run::begin(short_recipe(), {.folder = path, .costs = "none"});
    const RunResult stopped = run.train({.on_step = [&](const RunStep& step) {
      if (step.step == 2) run.stop();
    }});
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_EQ(stopped.steps, 2U);
  }
  std::vector<std::string> notes;
  snug::Run run =
      snug::Run::resume(path, {}, {.costs = "none", .on_note = [&](const std::string& note) { notes.push_back(note); }});
  const RunResult result = run.train();
  EXPECT_EQ(result.steps, 6U);
  EXPECT_EQ(weights_of(result.last_snapshot), expected);
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.back(), "resuming " + path + " after step 2");
}

TEST(Run, IsResumedForLongerButNotAsAnother) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "run").string();
  snug::Run::begin(short_recipe(), {.folder = path, .costs = "none"}).train();
  {
    snug::Run longer = snug::Run::resume(path, {{"steps", "8"}, {"optimizer.learning_rate", "0.01"}}, {.costs = "none"});
    EXPECT_EQ(longer.total_steps(), 8U);
    EXPECT_EQ(longer.train().steps, 8U);
  }
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] {
                                  snug::Run::resume(path, {{"batch", "10"}});
                                }),
                                {"resumed", "recipe.toml"}));
  EXPECT_THROW(snug::Run::resume((folder.path() / "nothing").string()), UserError);
}

}  // namespace

}  // namespace snug
