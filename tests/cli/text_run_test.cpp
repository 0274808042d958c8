// A run of a language model, its text and its tokenizer: where they are later, and what they must be.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "photos.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

using support::TemporaryFolder;

// A run of two steps in "run" with the tokenizer "bpe", and another tokenizer, "other", of as many tokens.
void train_with_tokenizer(const fs::path& folder) {
  for (const auto& [text, words] : {std::pair("a.txt", "low lower lowest\n"), std::pair("b.txt", "high higher highest\n")}) {
    std::ofstream file(folder / text);
    for (int i = 0; i < 100; ++i) file << words;
  }
  ASSERT_EQ(run_in(folder, {"data", "learn", "a.txt", "--vocabulary", "262", "--out", "bpe"}).exit_code, 0);
  ASSERT_EQ(run_in(folder, {"data", "learn", "b.txt", "--vocabulary", "262", "--out", "other"}).exit_code, 0);
  const Ended trained = run_in(folder, {"train", "gpt-1-32", "--data", "a.txt", "--tokenizer", "bpe", "--length", "8", "--batch",
                                        "2", "--steps", "2", "--threads", "1", "--out", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
}

// With each of the commands that need the run's tokenizer.
std::vector<Ended> use(const fs::path& folder, const std::vector<std::string>& flags) {
  std::vector<Ended> ended;
  for (std::vector<std::string> words : {std::vector<std::string>{"eval", "run"},
                                         {"eval", "run", "--data", "b.txt"},
                                         {"generate", "run", "--prompt", "low", "--tokens", "2"},
                                         {"train", "--out", "run", "--resume", "--steps", "3"}}) {
    words.insert(words.end(), flags.begin(), flags.end());
    ended.push_back(run_in(folder, words));
  }
  return ended;
}

TEST(TextRun, OfTheTextInTheProgramIsTestedAndResumed) {
  const TemporaryFolder folder;
  const Ended trained = run_in(folder.path(), {"train", "gpt-1-32", "--data", "embedded-text", "--length", "64", "--batch", "2",
                                               "--steps", "1", "--threads", "1", "--out", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Ended tested = run_in(folder.path(), {"eval", "run"});
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
  const Ended resumed = run_in(folder.path(), {"train", "--out", "run", "--resume", "--steps", "2"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST(TextRun, AMovedTokenizerIsFoundWithTheFlag) {
  const TemporaryFolder folder;
  train_with_tokenizer(folder.path());
  fs::rename(folder / "bpe", folder / "moved");
  for (const Ended& ended : use(folder.path(), {})) EXPECT_EQ(ended.exit_code, 2) << ended.out;
  for (const Ended& ended : use(folder.path(), {"--tokenizer", "moved"})) EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(run_in(folder.path(), {"eval", "run"}).exit_code, 0) << "where it is now is remembered";
}

TEST(TextRun, AnotherTokenizerIsRefusedByEveryCommand) {
  const TemporaryFolder folder;
  train_with_tokenizer(folder.path());
  for (const Ended& ended : use(folder.path(), {"--tokenizer", "other"})) {
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_TRUE(support::mentions(ended.err, {"other", "not the one", "--tokenizer"})) << ended.err;
  }
  fs::rename(folder / "other/tokenizer.json", folder / "bpe/tokenizer.json");
  for (const Ended& ended : use(folder.path(), {})) EXPECT_EQ(ended.exit_code, 2) << ended.out;
}

TEST(TextRun, ExportTakesAMovedTokenizerIntoItsFolder) {
  const TemporaryFolder folder;
  train_with_tokenizer(folder.path());
  fs::rename(folder / "bpe", folder / "moved");
  const Ended exported = run_in(folder.path(), {"export", "run", "--to", "hf/", "--tokenizer", "moved"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_TRUE(fs::exists(folder / "hf/tokenizer.json"));
  EXPECT_EQ(run_in(folder.path(), {"export", "run", "--to", "w", "--tokenizer", "moved"}).exit_code, 2);
}

TEST(TextRun, WeightsForAnotherVocabularyAreSaidToBeForTokens) {
  const TemporaryFolder folder;
  train_with_tokenizer(folder.path());
  ASSERT_EQ(run_in(folder.path(), {"export", "run", "--to", "w"}).exit_code, 0);
  const Ended begun = run_in(folder.path(), {"train", "gpt-1-32", "--data", "a.txt", "--init", "w", "--length", "8", "--batch",
                                             "2", "--steps", "1", "--threads", "1", "--out", "other_run"});
  EXPECT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_TRUE(support::mentions(begun.err, {"262 tokens", "256", "random values"})) << begun.err;
}

TEST(TextRun, WhatIsForModelsOfOtherDataIsRefused) {
  const TemporaryFolder folder;
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_in(folder.path(), arguments);
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    return ended.err;
  };
  for (const std::vector<std::string>& flag :
       {std::vector<std::string>{"--classes", "10"}, {"--image-size", "32"}, {"--augment", "no"}, {"--skip-bad-images"}}) {
    std::vector<std::string> words{"train", "gpt-1-32", "--batch", "4"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_TRUE(support::mentions(error(words), {"'gpt-1-32'", "text", "images", flag.front()}));
  }
  for (const std::vector<std::string>& flag :
       {std::vector<std::string>{"--length", "16"}, {"--vocabulary", "300"}, {"--tokenizer", "bytes"}}) {
    std::vector<std::string> words{"plan", "small-cnn", "--batch", "4"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_TRUE(support::mentions(error(words), {"'small-cnn'", "text", "images", flag.front()}));
  }
  EXPECT_TRUE(support::mentions(error({"plan", "smal-cnn", "--batch", "4", "--length", "16"}), {"no model", "'smal-cnn'"}));
}

}  // namespace
}  // namespace snug::cli
