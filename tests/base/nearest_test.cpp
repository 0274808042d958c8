// What was probably meant by a name that does not exist.
#include "base/nearest.h"

#include <vector>

#include <gtest/gtest.h>

namespace snug {
namespace {

const std::vector<std::string_view> kFlags{"--batch", "--microbatch",    "--min-microbatch", "--learning-rate",
                                           "--steps", "--momentum-bits", "--momentum",       "--eval-every",
                                           "--to",    "--json"};

TEST(Nearest, CountsLettersToChangeAddLeaveOutOrSwap) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "step"), 4);
  EXPECT_EQ(edit_distance("step", "steps"), 1);
  EXPECT_EQ(edit_distance("steps", "step"), 1);
  EXPECT_EQ(edit_distance("stops", "steps"), 1);
  EXPECT_EQ(edit_distance("setps", "steps"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edits_to_begin_with("lyer1", "layer1.0.conv1.weight"), 1);
  EXPECT_EQ(edits_to_begin_with("layer1", "layer1.0.conv1.weight"), 0);
}

TEST(Nearest, NamesAreFoundByFewMistakes) {
  EXPECT_EQ(nearest("--step", kFlags), "--steps");
  EXPECT_EQ(nearest("--jsno", kFlags), "--json");
  EXPECT_EQ(nearest("--momentun", kFlags), "--momentum");
  EXPECT_EQ(nearest("--leraning-rat", kFlags), "--learning-rate");
}

TEST(Nearest, HowWordsAreJoinedAndCapitalsMakeNoDifference) {
  EXPECT_EQ(nearest("--learning_rate", kFlags), "--learning-rate");
  EXPECT_EQ(nearest("-Batch", kFlags), "--batch");
  EXPECT_EQ(nearest("To", kFlags), "--to");
  EXPECT_EQ(nearest("ResNet50", std::vector<std::string_view>{"resnet-18", "resnet-50"}), "resnet-50");
}

TEST(Nearest, TheShortestNameThatIsBegunOrContinuedIsMeant) {
  EXPECT_EQ(nearest("--mo", kFlags), "--momentum");
  EXPECT_EQ(nearest("--micro", kFlags), "--microbatch");
  EXPECT_EQ(nearest("--batch-size", kFlags), "--batch");
}

TEST(Nearest, AbbreviationsAreMadeOfTheWordsFirstLetters) {
  EXPECT_EQ(nearest("--lr", kFlags), "--learning-rate");
  EXPECT_EQ(nearest("lr", std::vector<std::string_view>{"nesterov", "learning_rate"}), "learning_rate");
}

TEST(Nearest, WhatIsFarFromAllNamesMeansNone) {
  for (const char* text : {"--bogus", "-x", "--t", "", "--", "--foo"}) EXPECT_EQ(nearest(text, kFlags), std::nullopt) << text;
  EXPECT_EQ(nearest("tpu", std::vector<std::string_view>{"cpu", "cuda"}), std::nullopt);
  EXPECT_EQ(nearest("resnet-34", std::vector<std::string_view>{"resnet-18", "resnet-50"}), std::nullopt);
  EXPECT_EQ(nearest("step", {}), std::nullopt);
}

TEST(Nearest, TheQuestionIsTheEndOfAMessage) {
  EXPECT_EQ(did_you_mean("--step", kFlags), "; did you mean --steps?");
  EXPECT_EQ(did_you_mean("--bogus", kFlags), "");
}

}  // namespace
}  // namespace snug
