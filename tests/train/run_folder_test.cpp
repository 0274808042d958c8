#include "train/run_folder.h"

#include <limits>

#include <gtest/gtest.h>

#include "io/plan_file.h"
#include "ops/ops.h"
#include "small_session.h"
#include "support/files.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::train {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

namespace fs = std::filesystem;

const ProgramLoss kLoss{.facts = ops::softmax_cross_entropy.loss};
const settings::Recipe kRecipe{.model = "small", .steps = 10};

TEST(RunFolder, NewRunHasItsFiles) {
  const TemporaryFolder folder;
  const fs::path path = folder / "runs/x";
  Session session = small_session();
  RunFolder run = RunFolder::create(path, kRecipe, &session.plan());
  run.log("began");
  run.add_metrics(
      {.step = 1, .epoch = 0.5, .loss = 2.25, .score = 0.5, .learning_rate = 0.1, .loss_scale = 1024, .resident_bytes = 8192},
      kLoss);
  run.add_metrics({.step = 2, .epoch = 1, .measured_peak_bytes = 4096, .test_loss = std::numeric_limits<double>::quiet_NaN()},
                  kLoss);
  small_step(session);
  EXPECT_EQ(run.save_snapshot(session, {}, 2), snapshot_path(path, 1));

  EXPECT_EQ(run.recipe(), kRecipe);
  EXPECT_EQ(bytes_of(path / "recipe.toml"), settings::print_recipe(kRecipe));
  EXPECT_EQ(bytes_of(path / "log.txt"), "began\n");
  EXPECT_EQ(bytes_of(path / "metrics.jsonl"),
            R"({"step":1,"epoch":0.5,"loss":2.25,"accuracy":0.5,"learning_rate":0.1,"loss_scale":1024.0,"resident_bytes":8192})"
            "\n"
            R"({"step":2,"epoch":1.0,"measured_peak_bytes":4096,"test_loss":null})"
            "\n");
  EXPECT_EQ(io::read_plan_file(path / "plan.txt").planned_peak_bytes, session.plan().planned_peak_bytes);
  ASSERT_TRUE(run.find_latest_good().snapshot.has_value());
  EXPECT_EQ(run.find_latest_good().snapshot->counters.step, 1U);
}

TEST(RunFolder, TheLossNamesTheMetricsOfALine) {
  const LossFacts facts{.metrics = {"nll", {}}, .unit = "tokens"};
  const MetricsLine line{
      .step = 1, .epoch = 1, .loss = 2, .score = 0.5, .units_per_second = 10, .test_loss = 3, .test_score = 0.25};
  EXPECT_EQ(to_json(line, {.facts = &facts}), R"({"step":1,"epoch":1.0,"nll":2.0,"tokens_per_second":10.0,"test_nll":3.0})");
  EXPECT_EQ(to_json(line, kLoss),
            R"({"step":1,"epoch":1.0,"loss":2.0,"accuracy":0.5,"images_per_second":10.0,"test_loss":3.0,"test_accuracy":0.25})");
}

TEST(RunFolder, FolderWithARunIsRefusedUnlessItIsResumed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      support::mentions(message_of<UserError>([&] { RunFolder::resume(folder.path()); }), {folder.path().string(), "no run"}));
  { RunFolder::create(folder.path(), kRecipe); }
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { RunFolder::create(folder.path(), kRecipe); }),
                                {folder.path().string(), "holds a run"}));
  EXPECT_EQ(RunFolder::resume(folder.path()).recipe(), kRecipe);
}

TEST(RunFolder, TwoProcessesDoNotWriteOneFolder) {
  const TemporaryFolder folder;
  {
    const RunFolder run = RunFolder::create(folder.path(), kRecipe);
    // A lock belongs to the open file, so a second one in this process stands for another process.
    const std::string expected =
        "another process is writing to run folder '" + folder.path().string() + "'; wait for it, or choose another folder";
    EXPECT_EQ(message_of<UserError>([&] { RunFolder::resume(folder.path()); }), expected);
    EXPECT_EQ(message_of<UserError>([&] { RunFolder::create(folder.path(), kRecipe); }), expected);
  }
  EXPECT_NO_THROW(RunFolder::resume(folder.path()));
}

TEST(RunFolder, ResumedRunGoesOnBehindTheSnapshot) {
  const TemporaryFolder folder;
  {
    RunFolder run = RunFolder::create(folder.path(), kRecipe);
    for (std::uint64_t step = 1; step <= 5; ++step) run.add_metrics({.step = step}, kLoss);
  }
  // What a killed process may leave: half a line, a half-written snapshot, a damaged one.
  std::ofstream(folder / "metrics.jsonl", std::ios::app) << "{\"step\":2,\"ep";
  write_bytes(folder / "snapshots/step_000000005.safetensors.tmp-1-2", "half");
  write_bytes(snapshot_path(folder.path(), 5), "damaged");
  RunFolder run = RunFolder::resume(folder.path());
  run.rewind(3);
  run.add_metrics({.step = 4}, kLoss);
  EXPECT_EQ(bytes_of(folder / "metrics.jsonl"),
            "{\"step\":1,\"epoch\":0.0}\n{\"step\":2,\"epoch\":0.0}\n"
            "{\"step\":3,\"epoch\":0.0}\n{\"step\":4,\"epoch\":0.0}\n");
  EXPECT_FALSE(fs::exists(folder / "snapshots/step_000000005.safetensors.tmp-1-2"));
  EXPECT_FALSE(fs::exists(snapshot_path(folder.path(), 5)));
  EXPECT_EQ(bytes_of(folder / "snapshots/step_000000005.safetensors.damaged"), "damaged");

  // The snapshot just made stays although a later, damaged one was there.
  Session session = small_session();
  for (int i = 0; i < 4; ++i) small_step(session);
  const fs::path saved = run.save_snapshot(session, {}, 1);
  EXPECT_TRUE(fs::exists(saved));
  EXPECT_EQ(run.find_latest_good().snapshot->counters.step, 4U);
}

TEST(RunFolder, BestSnapshotStays) {
  const TemporaryFolder folder;
  RunFolder run = RunFolder::create(folder.path(), kRecipe);
  Session session = small_session();
  for (int i = 0; i < 5; ++i) {
    small_step(session);
    run.save_snapshot(session, {.best_metric = 0.5, .best_step = 2}, 1);
  }
  std::vector<std::uint64_t> left;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    if (fs::exists(snapshot_path(folder.path(), step))) left.push_back(step);
  }
  EXPECT_EQ(left, (std::vector<std::uint64_t>{2, 5}));
}

TEST(RunFolder, PlaceThatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "x");
  const std::string message = message_of<UserError>([&] { RunFolder::create(folder / "file/run", kRecipe); });
  EXPECT_NE(message.find("cannot be made"), std::string::npos) << message;
}

}  // namespace

}  // namespace snug::train
