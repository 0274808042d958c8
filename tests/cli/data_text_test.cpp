// snug data with texts.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "photos.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(DataText, InfoCountsTokensAndWhatIsNotUtf8) {
  const TemporaryFolder folder;
  write(folder / "a.txt", repeated("abcdefghi\n", 99) +
                              "abc\xFF\xFE"
                              "fghi\n");
  const Ended ended = run_in(folder.path(), {"data", "info", "a.txt", "--length", "90"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "a.txt: 900 training and 100 test tokens, 1.000 per byte\n"
            "9 training and 2 test examples of 90 tokens\n"
            "tokenizer bytes with 256 tokens\n"
            "2 bytes are not UTF-8, the first in a.txt at byte 993\n");
  const Json json = Json::parse(run_in(folder.path(), {"data", "info", "a.txt", "--json"}).out);
  EXPECT_EQ(json.at("length"), 256);
  EXPECT_EQ(json.at("vocabulary"), 256);
  EXPECT_EQ(json.at("train_tokens"), 900);
  EXPECT_EQ(json.at("test_bytes"), 100);
  EXPECT_EQ(json.at("tokens_per_byte"), 1.0);
  EXPECT_EQ(json.at("bytes_not_utf8"), 2);
}

TEST(DataText, LearnsATokenizerThatInfoAndTokensTake) {
  const TemporaryFolder folder;
  write(folder / "a.txt", repeated("low lower lowest\n", 100));
  const Ended learned = run_in(folder.path(), {"data", "learn", "a.txt", "--vocabulary", "262", "--out", "bpe/small"});
  EXPECT_EQ(learned.exit_code, 0) << learned.err;
  EXPECT_EQ(learned.out, "bpe/small/tokenizer.json: 262 tokens learned from a.txt\n");
  const Ended info = run_in(folder.path(), {"data", "info", "a.txt", "--tokenizer", "bpe/small", "--length", "8"});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_NE(info.out.find("tokenizer bpe/small with 262 tokens\nall of it is UTF-8\n"), std::string::npos) << info.out;

  write(folder / "b.txt", "lowlow!");
  const Ended tokens = run_in(folder.path(), {"data", "tokens", "b.txt", "--tokenizer", "bpe/small/tokenizer.json"});
  EXPECT_EQ(tokens.exit_code, 0) << tokens.err;
  // lo and low are the first merges, 256 and 257; ! is the first of the alphabet.
  EXPECT_EQ(tokens.out, "257\n257\n0\n");
  const Json json = Json::parse(run_in(folder.path(), {"data", "tokens", "b.txt", "--json"}).out);
  EXPECT_EQ(json.at("tokens"), (std::vector<int>{'l', 'o', 'w', 'l', 'o', 'w', '!'}));
}

TEST(DataText, TokensOfALongTextAreAllInTheObject) {
  const TemporaryFolder folder;
  write(folder / "long.txt", repeated("a long text. ", 20'000));
  write(folder / "empty.txt", "");
  const Json json = Json::parse(run_in(folder.path(), {"data", "tokens", "long.txt", "--json"}).out);
  EXPECT_EQ(json.at("data"), "long.txt");
  EXPECT_EQ(json.at("tokenizer"), "bytes");
  EXPECT_EQ(json.at("tokens").size(), 260'000U);
  EXPECT_EQ(Json::parse(run_in(folder.path(), {"data", "tokens", "empty.txt", "--json"}).out).at("tokens"), Json::array());
}

TEST(DataText, CheckNamesBadFilesAndCountsWhatIsNotUtf8) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "texts");
  write(folder / "texts/a.txt", "text");
  write(folder / "texts/b.txt", "b\xFF");
  const Ended good = run_in(folder.path(), {"data", "check", "texts"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out,
            "texts: all 2 files can be read\n"
            "1 byte is not UTF-8, the first in texts/b.txt at byte 1; tokenizers take them as they are\n");
  write(folder / "texts/c.txt", "");
  const Ended bad = run_in(folder.path(), {"data", "check", "texts"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(bad.out, "texts/c.txt is empty\n");
  EXPECT_TRUE(support::mentions(bad.err, {"1 of the 3 files", "texts"})) << bad.err;
  const Json json = Json::parse(run_in(folder.path(), {"data", "check", "texts", "--json"}).out);
  EXPECT_EQ(json.at("bytes_not_utf8"), 1);
  EXPECT_EQ(json.at("bad_files")[0].at("file"), "texts/c.txt");
  EXPECT_EQ(run_in(folder.path(), {"data", "check", "embedded-text"}).out,
            "embedded-text is part of the program; it has no files to check\n");
}

TEST(DataText, WhatDoesNotFitIsRefusedInOneSentence) {
  const TemporaryFolder folder;
  write(folder / "a.txt", "a short text, of which little can be learned");
  write(folder / "broken.json", "{");
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_in(folder.path(), arguments);
    EXPECT_EQ(ended.exit_code, 2);
    return ended.err;
  };
  EXPECT_TRUE(support::mentions(error({"data", "info", "a.txt"}), {"a.txt", "40", "256", "follows"}));
  EXPECT_TRUE(
      support::mentions(error({"data", "info", "a.txt", "--tokenizer", "broken.json"}), {"broken.json", "JSON", "wrong", "2"}));
  EXPECT_TRUE(support::mentions(error({"data", "info", "a.txt", "--image-size", "32"}), {"a.txt", "resized", "32x32"}));
  EXPECT_TRUE(
      support::mentions(error({"data", "info", "embedded", "--tokenizer", "bytes"}), {"embedded", "--tokenizer", "--length"}));
  EXPECT_TRUE(support::mentions(error({"data", "learn", "a.txt"}), {"'snug data learn'", "folder", "--out", "my_tokenizer"}));
  EXPECT_TRUE(
      support::mentions(error({"data", "learn", "a.txt", "--vocabulary", "100", "--out", "x"}), {"100", "small", "256", "257"}));
  EXPECT_TRUE(support::mentions(error({"data", "learn", "nowhere", "--out", "x"}), {"'nowhere'", "learn"}));
  EXPECT_TRUE(support::mentions(error({"data", "tokens", "nowhere.txt"}), {"'nowhere.txt'", "tokens"}));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_TRUE(support::mentions(error({"data", "tokens", "empty"}), {"'empty'", "no text"}));
  EXPECT_TRUE(support::mentions(error({"train", "gpt-1-32", "--data", "empty"}), {"gpt-1-32", "empty", "no .txt file"}));
  EXPECT_TRUE(support::mentions(error({"train", "gpt-1-32", "--data", "cifar10"}), {"gpt-1-32", "cifar10", "images"}));
  EXPECT_TRUE(support::mentions(error({"data", "get", "embedded-text"}), {"embedded-text", "download"}));
}

}  // namespace
}  // namespace snug::cli
