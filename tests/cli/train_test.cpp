// Training as a user runs it: another process, a folder, signals.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "run_snug.h"
#include "settings/recipe.h"
#include "snapshot_tensors.h"
#include "support/messages.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "train/snapshot.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;

using Json = nlohmann::json;

std::vector<std::string> train(const std::filesystem::path& out, const std::vector<std::string>& more = {}) {
  // Few threads and a tiny batch: these tests are about what is kept, not about speed.
  std::vector<std::string> arguments{"train",  "small-cnn", "--batch",     "20", "--threads", "1",
                                     "--seed", "7",         "--clip-norm", "5",  "--out",     out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> resume(const std::filesystem::path& out) {
  return {"train", "--out", out.string(), "--resume", "--json"};
}

std::vector<Json> metrics_of(const std::filesystem::path& run) {
  std::ifstream file(run / "metrics.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(Train, LeavesARunFolderAndOneJsonObject) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  const Ended ended = run_snug(train(run, {"--steps", "6", "--eval-every", "3", "--budget", "2.1MB", "--json"}));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json result = Json::parse(ended.out);
  EXPECT_EQ(result["model"], "small-cnn");
  EXPECT_EQ(result["threads"], 1);
  EXPECT_EQ(result["steps"], 6);
  EXPECT_EQ(result["interrupted"], false);
  EXPECT_EQ(result["budget_bytes"], 2'100'000);
  EXPECT_LE(result["planned_peak_bytes"].get<std::int64_t>(), 2'100'000);
  EXPECT_EQ(result["measured_peak_bytes"], result["planned_peak_bytes"]);
  EXPECT_GT(result["plain_peak_bytes"].get<std::int64_t>(), 2'100'000);
  EXPECT_GT(result["process_overhead_bytes"].get<std::int64_t>(), 0);
  EXPECT_GT(result["images_per_second"].get<double>(), 0);
  EXPECT_GE(result["test_accuracy"].get<double>(), 0);
  for (const char* name : {"recipe.toml", "plan.txt", "metrics.jsonl", "log.txt", "snapshots"}) {
    EXPECT_TRUE(std::filesystem::exists(run / name)) << name;
  }
  const std::vector<Json> metrics = metrics_of(run);
  ASSERT_EQ(metrics.size(), 8U) << "six steps and two evaluations";
  EXPECT_EQ(metrics.back()["step"], 6);
  EXPECT_EQ(metrics.back()["test_accuracy"], result["test_accuracy"]);
}

TEST(Train, ACheckpointedRunEndsWithTheSameWeightsInFewerBytes) {
  const TemporaryFolder folder;
  const Ended plain = run_snug(train(folder / "plain", {"--steps", "4", "--json"}));
  const Ended less = run_snug(train(folder / "less", {"--steps", "4", "--checkpoint", "sqrt", "--json"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(less.exit_code, 0) << less.err;
  const Json result = Json::parse(less.out);
  EXPECT_EQ(result["checkpoint"], "sqrt");
  EXPECT_EQ(result["measured_peak_bytes"], result["planned_peak_bytes"]);
  EXPECT_LT(result["planned_peak_bytes"], Json::parse(plain.out)["planned_peak_bytes"]);
  EXPECT_EQ(result["plain_peak_bytes"], Json::parse(plain.out)["plain_peak_bytes"]);
  EXPECT_EQ(result["train_loss"], Json::parse(plain.out)["train_loss"]);
  EXPECT_EQ(tensors_of(folder / "less"), tensors_of(folder / "plain"));
  EXPECT_FALSE(tensors_of(folder / "less").empty());
}

TEST(Train, AFinishedRunCanBeTestedAndExported) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  const Ended trained = run_snug(train(run, {"--steps", "4", "--json"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Ended tested = run_snug({"eval", run.string(), "--json"});
  ASSERT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_EQ(Json::parse(tested.out)["test_accuracy"], Json::parse(trained.out)["test_accuracy"]);
  EXPECT_EQ(Json::parse(tested.out)["test_loss"], Json::parse(trained.out)["test_loss"]);

  const auto weights = folder / "weights.safetensors";
  const Ended exported = run_snug({"export", run.string(), "--to", weights.string()});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const Ended again = run_snug({"train", "small-cnn", "--init", weights.string(), "--learning-rate", "1e-30", "--batch", "20",
                                "--steps", "1", "--threads", "1", "--out", (folder / "again").string(), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto before = tensors_of(run);
  const auto after = tensors_of(folder / "again");
  ASSERT_TRUE(before.contains("conv2.weight"));
  EXPECT_EQ(before.at("conv2.weight"), after.at("conv2.weight")) << "a learning rate of nearly 0 leaves the weights as they came";
}

TEST(Train, RefusesABudgetThatIsTooSmallWithTheLeastThatWouldDo) {
  const TemporaryFolder folder;
  const Ended refused = run_snug(train(folder / "run", {"--budget", "100KB"}));
  EXPECT_EQ(refused.exit_code, 3);
  const std::string before = "the smallest budget that it fits is ";
  const std::size_t at = refused.err.find(before);
  ASSERT_NE(at, std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "a refused run leaves nothing behind";
  const std::int64_t least = std::stoll(refused.err.substr(at + before.size()));
  EXPECT_EQ(run_snug(train(folder / "enough", {"--steps", "2", "--budget", std::to_string(least)})).exit_code, 0);
  EXPECT_EQ(run_snug(train(folder / "less", {"--steps", "2", "--budget", std::to_string(least - 1)})).exit_code, 3);
}

TEST(Train, TheRecipeOfARunSaysWhatWasChosenAndAsksForTheSamePlan) {
  const TemporaryFolder folder;
  const Ended first = run_snug(train(folder / "first", {"--steps", "2", "--budget", "1.9MB", "--json"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json result = Json::parse(first.out);
  const settings::Recipe recipe = settings::read_recipe(folder / "first" / "recipe.toml");
  EXPECT_EQ(recipe.methods.microbatch, result["microbatch"].get<std::int64_t>());
  EXPECT_EQ(to_string(*recipe.methods.checkpoint), result["checkpoint"].get<std::string>());
  EXPECT_NE(recipe.methods.checkpoint, CheckpointStrategy{}) << "so small a budget asks for recomputation";
  const Ended again =
      run_snug({"train", (folder / "first" / "recipe.toml").string(), "--out", (folder / "again").string(), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["planned_peak_bytes"], result["planned_peak_bytes"]);
  EXPECT_EQ(tensors_of(folder / "again"), tensors_of(folder / "first"));
}

TEST(Train, ASavedPlanIsRunAsItIs) {
  const TemporaryFolder folder;
  const std::string file = (folder / "small.plan").string();
  // The same plan, made before the data is known and with the data.
  const Ended planned =
      run_snug({"plan", "small-cnn", "--batch", "20", "--threads", "1", "--budget", "1.9MB", "--save", file, "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const auto without_clipping = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "train", "small-cnn", "--batch", "20", "--threads", "1", "--steps", "3", "--json", "--out", (folder / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_snug(words);
  };
  const Ended with_plan = without_clipping("with_plan", {"--plan", file});
  ASSERT_EQ(with_plan.exit_code, 0) << with_plan.err;
  const Json result = Json::parse(with_plan.out);
  EXPECT_EQ(result["planned_peak_bytes"], Json::parse(planned.out)["planned_peak_bytes"]);
  EXPECT_EQ(result["measured_peak_bytes"], result["planned_peak_bytes"]);
  EXPECT_EQ(result["microbatch"], Json::parse(planned.out)["microbatch"]);
  const Ended with_budget = without_clipping("with_budget", {"--budget", "1.9MB"});
  ASSERT_EQ(with_budget.exit_code, 0) << with_budget.err;
  EXPECT_EQ(tensors_of(folder / "with_plan"), tensors_of(folder / "with_budget"));
  EXPECT_FALSE(tensors_of(folder / "with_plan").empty());

  const auto refusal = [&](const std::vector<std::string>& more, int exit_code) {
    std::vector<std::string> words{"--plan", file};
    words.insert(words.end(), more.begin(), more.end());
    const Ended refused = without_clipping("refused", words);
    EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
    return refused.err;
  };
  EXPECT_TRUE(support::mentions(refusal({"--batch", "40"}, 2), {file, "batches", "20", "40"}));
  EXPECT_TRUE(support::mentions(refusal({"--momentum", "0.8"}, 2), {"sgd", "'bn1.bias'", "0.9"}));
  EXPECT_TRUE(support::mentions(refusal({"--freeze", "conv1"}, 2), {"plan", "another 'small-cnn'"}));
  EXPECT_TRUE(support::mentions(refusal({"--checkpoint", "sqrt"}, 2), {file, "leave out --checkpoint"}));
  EXPECT_NE(refusal({"--budget", "1MB"}, 3).find("does not fit 1000000 bytes: it takes "), std::string::npos);
}

TEST(Train, ARunThatEndedBeforeItsFirstSnapshotGoesOnWithItsPlan) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_snug(train(run, {"--steps", "2", "--budget", "1.9MB"})).exit_code, 0);
  const auto whole = tensors_of(run);
  std::filesystem::remove_all(run / "snapshots");
  std::filesystem::create_directory(run / "snapshots");
  const Ended ended = run_snug(resume(run));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(tensors_of(run), whole);
}

// Interrupted at random steps and resumed: the same bytes as in one go.
TEST(Train, InterruptedAndResumedEqualsUninterruptedBitForBit) {
  const TemporaryFolder folder;
  const std::vector<std::string> length{"--epochs", "3", "--schedule", "cosine", "--warmup-steps", "20", "--json"};
  const Ended whole = run_snug(train(folder / "whole", length));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;

  std::mt19937 random(11);
  const auto run = folder / "parts";
  int interruptions = 0;
  unsigned wait_ms = 150;
  Ended ended;
  for (int attempt = 0; attempt < 100; ++attempt) {
    RunningSnug running(std::filesystem::exists(run / "recipe.toml") ? resume(run) : train(run, length));
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms + random() % 250));
    running.signal(attempt % 2 == 0 ? SIGINT : SIGTERM);
    ended = running.wait();
    if (ended.exit_code == 0) break;
    ASSERT_EQ(ended.exit_code, 128 + (attempt % 2 == 0 ? SIGINT : SIGTERM)) << ended.err;
    wait_ms += 40;                                              // so that it comes to its end where a process is slow to begin
    if (ended.out.empty()) continue;                            // before it listened to signals
    if (Json::parse(ended.out)["interrupted"] == false) break;  // after its last word
    ++interruptions;
  }
  ASSERT_FALSE(ended.out.empty()) << ended.err;
  ASSERT_FALSE(Json::parse(ended.out)["interrupted"].get<bool>()) << "it did not come to its end";
  EXPECT_GE(interruptions, 1);
  EXPECT_EQ(tensors_of(folder / "whole"), tensors_of(run));
  EXPECT_EQ(Json::parse(ended.out)["test_loss"], Json::parse(whole.out)["test_loss"]);

  // The metrics, too: each step once, with the same numbers.
  const std::vector<Json> once = metrics_of(folder / "whole");
  const std::vector<Json> parts = metrics_of(run);
  ASSERT_EQ(once.size(), parts.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i]["step"], parts[i]["step"]);
    EXPECT_EQ(once[i].value("loss", Json()), parts[i].value("loss", Json()));
  }
}

// A run of 5 steps that goes on to 8 is the run of 8 steps: this schedule does not look at the length. Its rates are those of the
// formula, in the warm-up, where it is resumed and after that, whatever the optimizer.
TEST(Train, InverseSqrtGoesOnWhereARunIsResumed) {
  const TemporaryFolder folder;
  for (const std::string optimizer : {"sgd", "adamw"}) {
    const std::vector<std::string> schedule{"--optimizer", optimizer,       "--learning-rate", "0.01",
                                            "--schedule",  "inverse-sqrt",  "--json",          "--warmup-steps",
                                            "3",           "--warmup-from", "0.001",           "--steps"};
    const auto of_steps = [&](const char* steps) {
      std::vector<std::string> words = schedule;
      words.emplace_back(steps);
      return words;
    };
    const auto whole = folder / (optimizer + "_whole");
    const auto parts = folder / (optimizer + "_parts");
    ASSERT_EQ(run_snug(train(whole, of_steps("8"))).exit_code, 0);
    ASSERT_EQ(run_snug(train(parts, of_steps("5"))).exit_code, 0);
    std::vector<std::string> longer = resume(parts);
    longer.insert(longer.end(), {"--steps", "8"});
    const Ended ended = run_snug(longer);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(tensors_of(parts), tensors_of(whole));
    for (const auto& run : {whole, parts}) {
      std::size_t checked = 0;
      for (const Json& line : metrics_of(run)) {
        if (!line.contains("learning_rate")) continue;
        const double step = line["step"].get<double>() - 1;  // lines count the steps that are done
        const double rate = step < 3 ? 0.001 + (0.01 - 0.001) * (step / 3) : 0.01 * std::sqrt(3 / step);
        EXPECT_EQ(line["learning_rate"].get<double>(), rate) << line;
        ++checked;
      }
      EXPECT_EQ(checked, 8U);
    }
  }
}

// Asked again, it makes no further step and still says what came out.
TEST(Train, AFinishedRunThatIsResumedTellsItsResultAgain) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  const Ended first = run_snug(train(run, {"--steps", "4", "--json"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Ended again = run_snug(resume(run));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json before = Json::parse(first.out);
  const Json after = Json::parse(again.out);
  ASSERT_TRUE(before.contains("test_loss"));
  for (const char* key : {"steps", "interrupted", "test_loss", "test_accuracy", "best_test_accuracy", "planned_peak_bytes",
                          "measured_peak_bytes"}) {
    EXPECT_EQ(before[key], after[key]) << key;
  }
  EXPECT_EQ(after["measured_peak_bytes"], after["planned_peak_bytes"]);
  EXPECT_FALSE(after.contains("train_loss")) << "no step was made now";
}

// Killed without warning, again and again, with a snapshot after every step: each restart finds a whole one.
TEST(Train, SurvivesKillsAtAnyMoment) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  std::mt19937 random(5);
  const std::vector<std::string> length{"--steps", "100000", "--snapshot-every", "1", "--eval-every", "1000000"};
  std::uint64_t last_step = 0;
  int idle_kills = 0;                // in a row
  unsigned least_milliseconds = 80;  // to begin with: a machine that does much else takes longer to get to a step
  for (int kills = 1; kills <= 100; ++kills) {
    const bool begun = std::filesystem::exists(run / "recipe.toml");
    RunningSnug running(begun ? resume(run) : train(run, length));
    std::this_thread::sleep_for(std::chrono::milliseconds(least_milliseconds + random() % 200));
    running.signal(SIGKILL);
    const Ended ended = running.wait();
    ASSERT_EQ(ended.exit_code, 128 + SIGKILL) << "it ended by itself: " << ended.err;
    const train::FoundSnapshot found = train::find_latest_good(run);
    EXPECT_TRUE(found.warnings.empty()) << found.warnings.front();
    ASSERT_TRUE(found.snapshot || last_step == 0) << "after kill " << kills;
    const std::uint64_t step = found.snapshot ? found.snapshot->counters.step : 0;
    EXPECT_GE(step, last_step);
    idle_kills = step == last_step ? idle_kills + 1 : 0;
    if (idle_kills >= 5) least_milliseconds = std::min(2 * least_milliseconds, 2000U);
    last_step = step;
  }
  EXPECT_GT(last_step, 20U) << "the runs got somewhere between the kills";
}

// A run goes on with its saved plan, so its recipe may only be edited where the plan leaves things open.
TEST(Train, AResumedRunMayGoOnLongerButNotBecomeAnother) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_snug(train(run, {"--steps", "2"})).exit_code, 0);
  std::ostringstream text;
  text << std::ifstream(run / "recipe.toml").rdbuf();
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::string edited = text.str();
    const std::size_t at = edited.find(from);
    ASSERT_NE(at, std::string::npos) << edited;
    std::ofstream(run / "recipe.toml") << edited.replace(at, from.size(), to);
  };
  edit("batch = 20", "batch = 40");
  const Ended refused = run_snug(resume(run));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(support::mentions(refused.err, {"another run"})) << refused.err;
  edit("steps = 2", "steps = 4");
  const Ended longer = run_snug(resume(run));
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_EQ(Json::parse(longer.out)["steps"], 4);
}

std::string random_records(std::size_t count, unsigned brightest) {
  std::string records(count * 3073, '\0');
  std::mt19937 random(3);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i] = static_cast<char>(i % 3073 == 0 ? random() % 10 : random() % (brightest + 1));
  }
  return records;
}

// Other test images are normalized as the training images were, whatever lies beside them.
TEST(Train, EvaluationKeepsTheNormalizationOfTheTrainingData) {
  const TemporaryFolder folder;
  for (const char* name : {"bright", "dark"}) {
    std::filesystem::create_directory(folder / name);
    std::ofstream(folder / name / "data_batch_1.bin") << random_records(40, name[0] == 'b' ? 255 : 60);
    std::ofstream(folder / name / "test_batch.bin") << random_records(20, 255);
  }
  const auto run = folder / "run";
  ASSERT_EQ(run_snug(train(run, {"--data", (folder / "bright").string(), "--steps", "2"})).exit_code, 0);
  const Ended own = run_snug({"eval", run.string(), "--json"});
  const Ended other = run_snug({"eval", run.string(), "--data", (folder / "dark").string(), "--json"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(Json::parse(own.out)["test_loss"], Json::parse(other.out)["test_loss"]);
}

// The data set lies on the disk: ten times as many images take no more memory.
TEST(Train, MemoryDoesNotGrowWithTheDataSet) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer's heap is not measured";
  const TemporaryFolder folder;
  const std::string records = random_records(200, 255);
  const auto overhead = [&](const std::string& name, int files) {
    const auto data = folder / name;
    std::filesystem::create_directory(data);
    for (int i = 1; i <= files; ++i) std::ofstream(data / ("data_batch_" + std::to_string(i) + ".bin")) << records;
    std::ofstream(data / "test_batch.bin") << records;
    const Ended ended = run_snug(train(folder / (name + "_run"), {"--data", data.string(), "--steps", "10", "--json"}));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return Json::parse(ended.out)["process_overhead_bytes"].get<std::int64_t>();
  };
  // Four files and forty: 2.5 MB and 25 MB of images.
  const std::int64_t small = overhead("small", 4);
  const std::int64_t large = overhead("large", 40);
  EXPECT_LT(std::abs(large - small), 1'000'000) << small << " and " << large;
}

// Whatever goes wrong first, the snapshot that is named can be gone on from: its weights and its evaluation are finite.
TEST(Train, StopsAtTheFirstNumberThatIsNotFiniteAndNamesAGoodSnapshot) {
  const TemporaryFolder folder;
  const auto stopped = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{"train",   "small-cnn", "--batch",          "20", "--threads", "1",
                                   "--steps", "200",       "--snapshot-every", "1",  "--out",     (folder / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run_snug(words);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_EQ(ended.err.find("nan"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("; try a smaller --learning-rate, "), std::string::npos) << ended.err;
    const train::FoundSnapshot found = train::find_latest_good(folder / name);
    EXPECT_EQ(found.snapshot.has_value(), ended.err.find("the last good snapshot is ") != std::string::npos) << ended.err;
    if (!found.snapshot) return ended.err;
    const Ended tested = run_snug({"eval", (folder / name).string(), "--json"});
    EXPECT_EQ(tested.exit_code, 0) << tested.err;
    if (!more.empty() && more.back() == "--eval-every=1") {
      EXPECT_TRUE(Json::parse(tested.out)["test_loss"].is_number()) << tested.out;
    }
    for (const auto& line : metrics_of(folder / name)) {
      EXPECT_TRUE(!line.contains("test_loss") || line["test_loss"].is_number()) << line;
    }
    return ended.err;
  };
  EXPECT_NE(stopped("saved", {"--learning-rate", "1e6"}).find("which is not saved; "), std::string::npos);
  EXPECT_NE(stopped("tested", {"--learning-rate", "1e6", "--eval-every=1"}).find("the test loss became "), std::string::npos);
}

}  // namespace
}  // namespace snug::cli
