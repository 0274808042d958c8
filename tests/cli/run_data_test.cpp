// A run and its data: what it remembers of it, and what happens when the data changes, moves or is damaged.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "photos.h"
#include "snapshot_tensors.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using support::TemporaryFolder;
using support::write_plain_png;

Ended train(const fs::path& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words{"train", "small-cnn",       "--batch", "4",     "--threads",
                                 "1",     "--learning-rate", "0.01",    "--out", "run"};
  words.insert(words.end(), more.begin(), more.end());
  return run_in(folder, words);
}

Ended resume(const fs::path& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"train", "--out", "run", "--resume"};
  words.insert(words.end(), more.begin(), more.end());
  return run_in(folder, words);
}

void raise_steps(const fs::path& run, const std::string& from, const std::string& to) {
  std::ifstream file(run / "recipe.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = text.find("steps = " + from);
  ASSERT_NE(at, std::string::npos) << text;
  std::ofstream(run / "recipe.toml") << text.replace(at, 8 + from.size(), "steps = " + to);
}

// A run of two steps that may go on to four, and a resumption after `change`.
Ended resumed_after(const TemporaryFolder& folder, const std::function<void()>& change) {
  make_photos(folder / "photos");
  const Ended first = train(folder.path(), {"--data", "photos", "--steps", "2"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  raise_steps(folder / "run", "2", "4");
  change();
  return resume(folder.path());
}

void expect_refused(const Ended& ended, const std::string& difference) {
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_TRUE(support::mentions(ended.err, {"data", "changed", difference})) << ended.err;
}

TEST(RunData, UnchangedDataIsResumed) {
  const TemporaryFolder folder;
  const Ended ended = resumed_after(folder, [] {});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json record = Json::parse(std::ifstream(folder / "run" / "data.json"));
  EXPECT_EQ(record["class_names"], Json({"a", "b"}));
  EXPECT_EQ(record["train_examples"], 16);
}

TEST(RunData, ClassesInAnotherOrderAreRefused) {
  const TemporaryFolder folder;
  const Ended ended = resumed_after(folder, [&] {
    for (const char* split : {"train", "test"}) fs::rename(folder / "photos" / split / "b", folder / "photos" / split / "A");
  });
  expect_refused(ended, "its class 0 is 'A' where the run has 'a' (its classes are A, a; the run's are a, b)");
}

TEST(RunData, AnotherClassIsRefused) {
  const TemporaryFolder folder;
  const Ended ended = resumed_after(folder, [&] { write_plain_png(folder / "photos/train/c/1.png", 9, 9, 9); });
  expect_refused(ended, "it has 3 classes (a, b, c) where the run has 2 (a, b)");
}

TEST(RunData, RemovedImagesAreRefused) {
  const TemporaryFolder folder;
  const Ended ended = resumed_after(folder, [&] { fs::remove(folder / "photos/train/a/3.png"); });
  expect_refused(ended, "it has 15 images for training and 8 for testing where the run has 16 and 8");
}

TEST(RunData, RenamedAndRepaintedImagesAreRefused) {
  const TemporaryFolder folder;
  expect_refused(resumed_after(folder, [&] { fs::rename(folder / "photos/train/a/3.png", folder / "photos/train/a/9.png"); }),
                 "its files have other names");
  fs::rename(folder / "photos/train/a/9.png", folder / "photos/train/a/3.png");
  write_plain_png(folder / "photos/train/a/3.png", 1, 2, 3);
  expect_refused(resume(folder.path()), "its images have changed: their mean is ");
}

// The weights of a run give the same loss on the same test images, whatever is added to its training images later.
TEST(RunData, EvaluationNormalizesAsTrainingDid) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  ASSERT_EQ(train(folder.path(), {"--data", "photos", "--steps", "2"}).exit_code, 0);
  const Ended before = run_in(folder.path(), {"eval", "run", "--json"});
  ASSERT_EQ(before.exit_code, 0) << before.err;
  for (int i = 0; i < 20; ++i) write_plain_png(folder / "photos/train/a" / ("white" + std::to_string(i) + ".png"), 255, 255, 255);
  const Ended after = run_in(folder.path(), {"eval", "run", "--json"});
  ASSERT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(Json::parse(after.out)["test_loss"], Json::parse(before.out)["test_loss"]);
  EXPECT_TRUE(support::mentions(after.err, {"run's data", "changed"})) << after.err;
}

TEST(RunData, ExportNeedsNothingButTheRun) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  ASSERT_EQ(train(folder.path(), {"--data", "photos", "--steps", "2"}).exit_code, 0);
  fs::rename(folder / "photos", folder / "moved");
  const Ended exported = run_in("/", {"export", (folder / "run").string(), "--to", (folder / "w.safetensors").string()});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const auto metadata = io::SafetensorsReader(folder / "w.safetensors").header().metadata;
  EXPECT_EQ(Json::parse(metadata.at("snug.classes")), Json({"a", "b"}));
  EXPECT_EQ(metadata.at("snug.image_size"), "32");
  EXPECT_EQ(Json::parse(metadata.at("snug.mean")).size(), 3U);
  // Testing needs images, from wherever they are now.
  const Ended tested = run_in("/", {"eval", (folder / "run").string(), "--data", (folder / "moved").string()});
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
}

TEST(RunData, RelativePathsHoldFromAnyWorkingFolder) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  ASSERT_EQ(train(folder.path(), {"--data", "photos", "--steps", "2"}).exit_code, 0);
  raise_steps(folder / "run", "2", "3");
  const std::string run = (folder / "run").string();
  const Ended resumed = run_in("/", {"train", "--out", run, "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const Ended tested = run_in("/", {"eval", run});
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
}

// A recipe is UTF-8, and a folder's name need not be: the path then stays as it was given.
TEST(RunData, AWorkingFolderOfAnyNameWillDo) {
  const TemporaryFolder folder;
  const fs::path odd = folder / "od\xFF";
  make_photos(odd / "photos");
  const Ended trained = train(odd, {"--data", "photos", "--steps", "2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  raise_steps(odd / "run", "2", "3");
  EXPECT_EQ(resume(odd).exit_code, 0);
}

TEST(RunData, MovedDataIsFoundWithTheFlag) {
  const TemporaryFolder folder;
  const Ended refused = resumed_after(folder, [&] { fs::rename(folder / "photos", folder / "moved"); });
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  const Ended resumed = resume(folder.path(), {"--data", "moved"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  raise_steps(folder / "run", "4", "5");
  EXPECT_EQ(resume(folder.path()).exit_code, 0) << "where it is now is remembered";
}

TEST(RunData, WeightsAreNotTestedOnOtherClasses) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  for (const char* split : {"train", "test"}) {
    fs::create_directories(folder / "pets" / split);
    fs::copy(folder / "photos" / split / "a", folder / "pets" / split / "cat", fs::copy_options::recursive);
    fs::copy(folder / "photos" / split / "b", folder / "pets" / split / "dog", fs::copy_options::recursive);
  }
  ASSERT_EQ(train(folder.path(), {"--data", "photos", "--steps", "1"}).exit_code, 0);
  const Ended ended = run_in(folder.path(), {"eval", "run", "--data", "pets"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"'pets'", "class 0", "'cat'", "'a'"})) << ended.err;
}

// One bad image: the run is saved and the way out is named; here the one that removes it.
TEST(RunData, ARunGoesOnWithoutTheImageThatCouldNotBeRead) {
  const TemporaryFolder folder;
  make_photos(folder / "photos", 200);  // more than are looked at for mean and deviation
  const fs::path bad = folder / "photos/train/a/102.png";
  std::ofstream(bad, std::ios::binary) << "not an image";
  const Ended stopped = train(folder.path(), {"--data", "photos", "--steps", "200"});
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_TRUE(support::mentions(stopped.err, {"102.png", "PNG", "JPEG", "saved"})) << stopped.err;
  EXPECT_TRUE(support::mentions(stopped.err, {"repair", "snug train --out run --resume"}));
  fs::remove(bad);
  const Ended resumed = resume(folder.path());
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(support::mentions(resumed.err, {"file", "gone"}));
  EXPECT_EQ(Json::parse(std::ifstream(folder / "run" / "data.json"))["train_examples"], 399);
}

TEST(RunData, ABatchLargerThanTheDataIsSaidAndCountedAsItIs) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  const auto trained = [&](const std::string& batch, const std::string& out) {
    const Ended ended =
        train(folder.path(), {"--data", "photos", "--batch", batch, "--steps", "6", "--microbatch", "4", "--json", "--out", out});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended;
  };
  const Ended large = trained("4000", "large");
  const Ended exact = trained("16", "exact");
  EXPECT_TRUE(support::mentions(large.err, {"4,000", "16 training images"})) << large.err;
  EXPECT_EQ(exact.err.find("is more than"), std::string::npos) << exact.err;
  // Both make the same steps. Counted as 4,000 images each, the first would seem 250 times as fast.
  const auto speed = [](const Ended& ended) { return Json::parse(ended.out)["images_per_second"].get<double>(); };
  EXPECT_LT(speed(large), 25 * speed(exact));
}

TEST(RunData, ExportDoesNotWriteOverARunsOwnFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder.path(), {"--steps", "1"}).exit_code, 0);
  const auto before = tensors_of(folder / "run");
  for (const std::string target : {"run/snapshots/step_000000001.safetensors", "run/plan.txt", "run/recipe.toml"}) {
    const Ended ended = run_in(folder.path(), {"export", "run", "--to", target});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(support::mentions(ended.err, {target, "keeps"}));
  }
  EXPECT_EQ(tensors_of(folder / "run"), before);
  EXPECT_EQ(run_in(folder.path(), {"export", "run", "--to", "run/weights.safetensors"}).exit_code, 0);
}

}  // namespace
}  // namespace snug::cli
