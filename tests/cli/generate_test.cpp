// Language models are trained and write, as a user sees it.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "photos.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using support::TemporaryFolder;

// "text.txt" says one sentence of 25 letters over and over, so that windows of 32 begin everywhere in it; "run" is a model that
// has learned it.
const std::string kSentence = "the cats sat on the mat. ";

Ended train(const fs::path& folder, const std::string& steps) {
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 300; ++i) text << kSentence;
  text.close();
  return run_in(folder, {"train", "gpt-2-32", "--data", "text.txt", "--length", "32", "--batch", "8", "--threads", "1", "--out",
                         "run", "--steps", steps, "--seed", "1", "--learning-rate", "0.003"});
}

Json generate(const fs::path& folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"generate", "run", "--json"});
  const Ended ended = run_in(folder, words);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out);
}

TEST(Generate, WritesWhatTheModelHasLearned) {
  const TemporaryFolder folder;
  const Ended trained = train(folder.path(), "120");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  // A sample of what was learned, and how to get more.
  EXPECT_NE(trained.out.find("it writes:\nThe "), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("snug generate run --prompt"), std::string::npos) << trained.out;

  const std::vector<std::string> likeliest{"--prompt", "the mat. the cats ", "--tokens", "14", "--temperature", "0"};
  const Json json = generate(folder.path(), likeliest);
  EXPECT_EQ(json.at("text"), kSentence.substr(9, 14));
  EXPECT_EQ(json.at("prompt_tokens"), 18);
  EXPECT_EQ(json.at("tokens").size(), 14U);
  EXPECT_EQ(json.at("planned_peak_bytes"), json.at("measured_peak_bytes"));
  EXPECT_EQ(generate(folder.path(), likeliest).at("text"), json.at("text"));

  const Ended plain =
      run_in(folder.path(), {"generate", "run", "--prompt", "the mat. the cats ", "--tokens", "14", "--temperature", "0"});
  EXPECT_EQ(plain.out, "the mat. " + kSentence.substr(0, 23) + "\n");
}

TEST(Generate, EndsWhereTheContextIsFull) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder.path(), "2").exit_code, 0);
  const Json json = generate(folder.path(), {"--prompt", "the ", "--tokens", "100", "--context", "10"});
  EXPECT_EQ(json.at("stopped_by"), "context");
  EXPECT_EQ(json.at("tokens").size(), 7U);  // the last of them is not read any more
}

TEST(Generate, ImpossibleTextsAreRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder.path(), "1").exit_code, 0);
  for (const std::vector<std::string>& flags : {std::vector<std::string>{},
                                                {"--prompt", "a long prompt", "--context", "5"},
                                                {"--prompt", "x", "--context", "100000"},
                                                {"--prompt", "x", "--temperature", "-1"},
                                                {"--prompt", "x", "--top-p", "0"}}) {
    std::vector<std::string> words{"generate", "run"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Ended ended = run_in(folder.path(), words);
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_EQ(ended.out, "");
  }
}

TEST(Generate, AnImageModelsRunIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run_in(folder.path(), {"train", "small-cnn", "--steps", "1", "--batch", "2", "--threads", "1", "--out", "run"}).exit_code,
      0);
  const Ended ended = run_in(folder.path(), {"generate", "run", "--prompt", "x"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("small-cnn"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace snug::cli
