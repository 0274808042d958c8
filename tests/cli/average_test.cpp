// snug average: the mean of the last snapshots of a run, and what --weights makes of it.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "photos.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::mentions;
using support::TemporaryFolder;

Ended done_in(const TemporaryFolder& folder, const std::vector<std::string>& words) {
  Ended ended = run_in(folder.path(), words);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return ended;
}

// A run in `run` with three snapshots, after steps 2, 4 and 6.
void train_small(const TemporaryFolder& folder, std::vector<std::string> more = {"small-cnn", "--batch", "20"}) {
  more.insert(more.begin(), "train");
  more.insert(more.end(), {"--threads", "1", "--steps", "6", "--snapshot-every", "2", "--keep", "3", "--out", "run"});
  done_in(folder, more);
}

Json evaluated(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words{"eval", "run", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return Json::parse(done_in(folder, words).out);
}

TEST(Average, OfTheLastSnapshotIsTheExport) {
  const TemporaryFolder folder;
  train_small(folder);
  done_in(folder, {"export", "run", "--to", "exported"});
  const Ended ended = done_in(folder, {"average", "run", "--last", "1", "--to", "mean"});
  EXPECT_TRUE(mentions(ended.out, {"mean:", "1 snapshot", "small-cnn", "step 6"}));
  EXPECT_EQ(text_of(folder / "mean"), text_of(folder / "exported"));
}

TEST(Average, OfARunIsThatOfItsFiles) {
  const TemporaryFolder folder;
  train_small(folder);
  const Json json = Json::parse(done_in(folder, {"average", "run", "--last", "2", "--to", "last", "--json"}).out);
  EXPECT_EQ(json["model"], "small-cnn");
  EXPECT_EQ(json["steps"], (std::vector<int>{4, 6}));
  EXPECT_EQ(json["to"], "last");
  const std::vector<std::string> files = json["snapshots"];
  done_in(folder, {"average", files.at(0), files.at(1), "--to", "named"});
  EXPECT_EQ(text_of(folder / "named"), text_of(folder / "last"));
  done_in(folder, {"export", "run", "--to", "exported"});
  EXPECT_NE(text_of(folder / "last"), text_of(folder / "exported"));
}

TEST(Average, IsEvaluatedWithoutANewRun) {
  const TemporaryFolder folder;
  train_small(folder);
  done_in(folder, {"export", "run", "--to", "exported"});
  done_in(folder, {"average", "run", "--last", "3", "--to", "mean"});
  const Json own = evaluated(folder, {});
  Json same = evaluated(folder, {"--weights", "exported"});
  EXPECT_EQ(same["test_loss"], own["test_loss"]);
  EXPECT_EQ(same["weights"], "exported");
  EXPECT_FALSE(same.contains("step"));
  EXPECT_NE(evaluated(folder, {"--weights", "mean"})["test_loss"], own["test_loss"]);
  EXPECT_TRUE(mentions(done_in(folder, {"eval", "run", "--weights", "mean"}).out, {"small-cnn", "mean:", "297"}));
}

TEST(Average, OfALanguageModelWritesAndIsAFolder) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "low lower lowest\n";
  std::ofstream(folder / "a.txt") << text;
  train_small(folder, {"gpt-2-64", "--data", "a.txt", "--length", "16", "--batch", "2"});
  done_in(folder, {"average", "run", "--last", "2", "--to", "hf/"});
  EXPECT_TRUE(std::filesystem::exists(folder / "hf/config.json"));
  const std::vector<std::string> words{"generate", "run", "--prompt", "low", "--tokens", "4", "--json"};
  std::vector<std::string> with_mean = words;
  with_mean.insert(with_mean.end(), {"--weights", "hf"});
  EXPECT_EQ(Json::parse(done_in(folder, with_mean).out)["weights"], "hf");
  // Those of the run by another way.
  done_in(folder, {"export", "run", "--to", "own"});
  std::vector<std::string> with_own = words;
  with_own.insert(with_own.end(), {"--weights", "own"});
  EXPECT_EQ(Json::parse(done_in(folder, with_own).out)["text"], Json::parse(done_in(folder, words).out)["text"]);
}

TEST(Weights, OfASparseRunAreEvaluatedDense) {
  const TemporaryFolder folder;
  train_small(folder, {"small-cnn", "--batch", "20", "--nonzero", "0.3"});
  done_in(folder, {"export", "run", "--to", "exported"});
  EXPECT_NEAR(evaluated(folder, {"--weights", "exported"})["test_loss"].get<double>(),
              evaluated(folder, {})["test_loss"].get<double>(), 1e-4);
}

TEST(Weights, OfPredictionsComeFromTheFile) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  train_small(folder, {"small-cnn", "--batch", "4", "--data", "photos"});
  done_in(folder, {"export", "run", "--to", "exported"});
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"predict", "run", "photos/test/a/0.png", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Json::parse(done_in(folder, words).out);
  };
  EXPECT_EQ(predicted({"--weights", "exported"})["predictions"], predicted({})["predictions"]);
}

}  // namespace
}  // namespace snug::cli
