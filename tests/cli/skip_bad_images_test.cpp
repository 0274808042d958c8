// Training without the images that cannot be read.
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

void spoil(const fs::path& path) { std::ofstream(path, std::ios::binary) << "not an image"; }

Ended train_without_bad(const fs::path& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"train",     "small-cnn", "--data", "photos", "--batch",          "4",
                                 "--threads", "1",         "--out",  "run",    "--skip-bad-images"};
  words.insert(words.end(), more.begin(), more.end());
  return run_in(folder, words);
}

TEST(SkipBadImages, TrainsOnTheOthersAndSaysHowManyAreLeftOut) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  spoil(folder / "photos/train/a/3.png");
  spoil(folder / "photos/test/b/4.png");
  const Ended ended = train_without_bad(folder.path(), {"--steps", "8"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(support::mentions(ended.err, {"left out 2 images", "snug data check photos"})) << ended.err;
  const Json record = Json::parse(std::ifstream(folder / "run" / "data.json"));
  EXPECT_EQ(record.at("train_examples"), 15);
  EXPECT_EQ(record.at("test_examples"), 7);
  // Testing leaves out the same: the recipe says so.
  const Ended tested = run_in(folder.path(), {"eval", "run", "--json"});
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_EQ(Json::parse(tested.out).at("test_examples"), 7);
  EXPECT_EQ(tested.err.find("has changed"), std::string::npos) << tested.err;
}

TEST(SkipBadImages, AResumedRunHasTheSameData) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  spoil(folder / "photos/train/a/3.png");
  ASSERT_EQ(train_without_bad(folder.path(), {"--steps", "2"}).exit_code, 0);
  const auto resume = [&](const std::string& steps) {
    return run_in(folder.path(), {"train", "--out", "run", "--resume", "--steps", steps});
  };
  EXPECT_EQ(resume("4").exit_code, 0);
  // What is left out may as well be gone; what is no longer left out, or newly so, is other data.
  fs::remove(folder / "photos/train/a/3.png");
  EXPECT_EQ(resume("5").exit_code, 0);
  spoil(folder / "photos/train/a/5.png");
  const Ended fewer = resume("6");
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_TRUE(support::mentions(fewer.err, {"data", "changed", "14 images", "15 and 8"})) << fewer.err;
  support::write_plain_png(folder / "photos/train/a/5.png", 200, 100, 0);
  support::write_plain_png(folder / "photos/train/a/3.png", 200, 60, 0);
  EXPECT_EQ(resume("6").exit_code, 2);
}

// A run that met a bad image can go on without it, by the flag instead of by removing the file.
TEST(SkipBadImages, AStoppedRunGoesOnWithTheFlag) {
  const TemporaryFolder folder;
  make_photos(folder / "photos", 200);
  spoil(folder / "photos/train/a/102.png");  // not among those that are looked at for mean and deviation
  const Ended stopped = run_in(folder.path(), {"train", "small-cnn", "--data", "photos", "--batch", "4", "--threads", "1",
                                               "--out", "run", "--steps", "110", "--learning-rate", "0.01"});
  EXPECT_EQ(stopped.exit_code, 2) << stopped.err;
  const Ended resumed = run_in(folder.path(), {"train", "--out", "run", "--resume", "--skip-bad-images"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Json::parse(std::ifstream(folder / "run" / "data.json")).at("train_examples"), 399);
}

}  // namespace
}  // namespace snug::cli
