// What a run's weights say of image files.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "photos.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using support::TemporaryFolder;

// In `folder`: "photos", and "run" that was trained on them until it tells red from blue.
void make_run(const fs::path& folder, const std::vector<std::string>& more = {}) {
  make_photos(folder / "photos");
  std::vector<std::string> words{"train", "small-cnn", "--data",  "photos", "--batch", "8", "--threads",       "1",
                                 "--out", "run",       "--steps", "12",     "--seed",  "1", "--learning-rate", "0.02"};
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = run_in(folder, words);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
}

Json predictions_of(const fs::path& folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"predict", "run", "--json"});
  const Ended ended = run_in(folder, words);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out);
}

TEST(Predict, NamesTheLikeliestClassesOfEachFile) {
  const TemporaryFolder folder;
  make_run(folder.path());
  const Json json = predictions_of(folder.path(), {"photos/test/a/2.png", "photos/test/b/4.png"});
  EXPECT_EQ(json.at("run"), "run");
  EXPECT_EQ(json.at("step"), 12);
  ASSERT_EQ(json.at("predictions").size(), 2U);
  EXPECT_EQ(json.at("predictions")[0].at("file"), "photos/test/a/2.png");
  EXPECT_EQ(json.at("predictions")[0].at("class"), "a");
  EXPECT_EQ(json.at("predictions")[1].at("class"), "b");
  for (const Json& each : json.at("predictions")) {
    ASSERT_EQ(each.at("classes").size(), 2U);
    EXPECT_EQ(each.at("classes")[0].at("class"), each.at("class"));
    EXPECT_EQ(each.at("classes")[0].at("probability"), each.at("probability"));
    EXPECT_GE(each.at("classes")[0].at("probability"), each.at("classes")[1].at("probability"));
    EXPECT_NEAR(each.at("classes")[0].at("probability").get<double>() + each.at("classes")[1].at("probability").get<double>(), 1,
                1e-9);
  }
}

TEST(Predict, TextHasOneLinePerFile) {
  const TemporaryFolder folder;
  make_run(folder.path());
  const Ended ended = run_in(folder.path(), {"predict", "run", "photos/test/a/2.png", "photos/test/b/4.png", "--top", "1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("photos/test/a/2.png  a ")) << ended.out;
  EXPECT_NE(ended.out.find("%\nphotos/test/b/4.png  b "), std::string::npos) << ended.out;
  EXPECT_EQ(std::ranges::count(ended.out, '%'), 2);
}

TEST(Predict, NeedsNothingButTheRunAndTheFiles) {
  const TemporaryFolder folder;
  make_run(folder.path());
  fs::copy(folder / "photos/test/b/2.png", folder / "mine.png");
  const Json before = predictions_of(folder.path(), {"mine.png"});
  fs::remove_all(folder / "photos");
  for (const char* file : {"plan.txt", "data.json", "recipe.toml"}) fs::remove(folder / "run" / file);
  const Ended ended = run_in("/", {"predict", (folder / "run").string(), (folder / "mine.png").string(), "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(Json::parse(ended.out).at("predictions")[0].at("classes"), before.at("predictions")[0].at("classes"));
}

// More files than fit a microbatch are taken in several, and come out in the order in which they were given.
TEST(Predict, FilesBeyondAMicrobatchAreJudgedAsTheOthers) {
  const TemporaryFolder folder;
  make_run(folder.path(), {"--microbatch", "2"});
  std::vector<std::string> files;
  for (const char* name : {"a/0", "b/0", "a/2", "b/2", "a/4"}) files.push_back(std::string("photos/test/") + name + ".png");
  const Json json = predictions_of(folder.path(), files);
  ASSERT_EQ(json.at("predictions").size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(json.at("predictions")[i].at("file"), files[i]);
    const Json alone = predictions_of(folder.path(), {files[i]});
    EXPECT_NEAR(json.at("predictions")[i].at("probability").get<double>(),
                alone.at("predictions")[0].at("probability").get<double>(), 1e-5);
  }
}

TEST(Predict, FilesBeforeABadOneAreStillAnswered) {
  const TemporaryFolder folder;
  make_run(folder.path());
  std::ofstream(folder / "bad.png") << "not an image";
  const Ended ended = run_in(folder.path(), {"predict", "run", "photos/test/a/2.png", "bad.png", "photos/test/b/2.png"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"bad.png", "PNG", "JPEG", "file"}));
  EXPECT_TRUE(ended.out.starts_with("photos/test/a/2.png  a ")) << ended.out;
  EXPECT_EQ(std::ranges::count(ended.out, '\n'), 1);
  const Ended gone = run_in(folder.path(), {"predict", "run", "nowhere.png"});
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_NE(gone.err.find("nowhere.png"), std::string::npos) << gone.err;
}

TEST(Predict, WhatIsMissingIsSaid) {
  const TemporaryFolder folder;
  make_run(folder.path());
  const Ended no_files = run_in(folder.path(), {"predict", "run"});
  EXPECT_EQ(no_files.exit_code, 2);
  EXPECT_NE(no_files.err.find("needs image files"), std::string::npos) << no_files.err;
  EXPECT_EQ(run_in(folder.path(), {"predict"}).exit_code, 2);
  EXPECT_EQ(run_in(folder.path(), {"predict", "photos", "photos/test/a/2.png"}).exit_code, 2);
  EXPECT_EQ(run_in(folder.path(), {"predict", "run", "photos/test/a/2.png", "--top", "0"}).exit_code, 2);
}

// The plan for prediction is made anew from the recipe: whatever the run's own plan does, its weights fit.
TEST(Predict, EveryKindOfRunPredicts) {
  const std::vector<std::vector<std::string>> kinds{{"--precision", "bf16"},
                                                    {"--precision", "fp16"},
                                                    {"--nonzero", "0.5"},
                                                    {"--momentum-bits", "8"},
                                                    {"--compress", "4", "--checkpoint", "sqrt"},
                                                    {"--nesterov", "no", "--drop-gradients"},
                                                    {"--statistics-group", "4", "--microbatch", "8"},
                                                    {"--budget", "1.5MB"},
                                                    {"--freeze", "conv", "--clip-norm", "1"}};
  for (const auto& flags : kinds) {
    SCOPED_TRACE(flags.front());
    const TemporaryFolder folder;
    make_run(folder.path(), flags);
    const Json json = predictions_of(folder.path(), {"photos/test/a/2.png", "--best"});
    EXPECT_EQ(json.at("predictions")[0].at("classes").size(), 2U);
  }
}

TEST(Predict, ARunOnDigitsCallsThemByTheirNumbers) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_in(folder.path(), {"train", "small-cnn", "--out", "run", "--steps", "1", "--batch", "8"}).exit_code, 0);
  support::write_plain_png(folder / "one.png", 1, 2, 3);
  const Json json = predictions_of(folder.path(), {"one.png"});
  EXPECT_EQ(json.at("predictions")[0].at("classes").size(), 3U);
  const std::string name = json.at("predictions")[0].at("class");
  EXPECT_TRUE(name.size() == 1 && name[0] >= '0' && name[0] <= '9') << name;
}

}  // namespace
}  // namespace snug::cli
