#include "io/weights_file.h"

#include <random>

#include <gtest/gtest.h>

#include "loose_tensors.h"
#include "small_session.h"
#include "support/messages.h"
#include "train/weights.h"
#include <snug/error.h>

namespace snug::train {

using support::bytes_of;
using support::message_of;
using support::write_bytes;

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string map_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = "{\"metadata\": {\"total_size\": 12}, \"weight_map\": {";
  for (const auto& [name, file] : entries) text += fmt::format("{}\"{}\": \"{}\"", text.ends_with('{') ? "" : ", ", name, file);
  return text + "}}";
}

// A small model's weights in one file, and in two beside an index.
class Shards : public testing::Test {
 protected:
  Shards() {
    small_step(session_);
    export_weights(folder_ / "w", session_);
    const auto loose = take_apart(folder_ / "w");
    for (std::size_t i = 0; i < loose.size(); ++i) {
      shards_[i % 2].push_back(loose[i]);
      entries_.emplace_back(loose[i].info.name, file_name(i % 2));
    }
    for (std::size_t i : {0U, 1U}) put_together(folder_ / file_name(i), shards_[i]);
    write_bytes(folder_ / kIndex, map_of(entries_));
  }
  static std::string file_name(std::size_t i) { return fmt::format("model-0000{}-of-00002.safetensors", i + 1); }
  std::string index() const { return "'" + (folder_ / kIndex).string() + "'"; }
  std::string refusal() {
    const auto before = all_bytes(session_);
    std::string text = message_of<UserError>([&] { import_weights(folder_ / kIndex, session_); });
    EXPECT_EQ(all_bytes(session_), before) << text;
    return text;
  }

  support::TemporaryFolder folder_;
  Session session_ = small_session();
  std::vector<LooseTensor> shards_[2];
  std::vector<std::pair<std::string, std::string>> entries_;
};

TEST_F(Shards, AreTheSameAsOneFileByTheirIndexOrTheirFolder) {
  for (const fs::path& path : {folder_ / kIndex, folder_.path()}) {
    Session other = small_session(/*seed=*/1);
    EXPECT_EQ(import_weights(path, other), "");
    export_weights(folder_ / "again", other);
    EXPECT_EQ(bytes_of(folder_ / "again"), bytes_of(folder_ / "w")) << path;
  }
}

TEST_F(Shards, SingleFileOfAFolderIsPreferred) {
  fs::rename(folder_ / "w", folder_ / "model.safetensors");
  write_bytes(folder_ / kIndex, "not an index");
  EXPECT_EQ(import_weights(folder_.path(), session_), "");
  const support::TemporaryFolder empty;
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { import_weights(empty.path(), session_); }),
                                {empty.string(), "model.safetensors", "index.json", "file"}));
}

TEST_F(Shards, MissingFileIsNamed) {
  fs::remove(folder_ / file_name(1));
  EXPECT_TRUE(support::mentions(refusal(), {index(), "'" + file_name(1) + "'", "not beside"}));
}

TEST_F(Shards, DamagedFileIsNamed) {
  fs::resize_file(folder_ / file_name(1), fs::file_size(folder_ / file_name(1)) - 1);
  EXPECT_TRUE(support::mentions(refusal(), {(folder_ / file_name(1)).string(), "'fc.weight'", "reaches"}));
}

TEST_F(Shards, TensorThatIsNotInItsFileIsNamed) {
  shards_[1].erase(shards_[1].begin());
  put_together(folder_ / file_name(1), shards_[1]);
  EXPECT_TRUE(support::mentions(refusal(), {index(), "'bn1.weight'", file_name(1), "fetch"}));
}

TEST_F(Shards, TensorInTwoFilesIsRefused) {
  shards_[1].push_back(shards_[0].front());
  put_together(folder_ / file_name(1), shards_[1]);
  EXPECT_TRUE(
      support::mentions(refusal(), {(folder_ / file_name(1)).string(), "'conv1.weight'", index(), file_name(0), "fetch"}));
}

TEST_F(Shards, TensorThatTheIndexDoesNotNameIsRefused) {
  shards_[1].push_back({{.name = "more", .dtype = io::TensorDType::u8, .shape = {1}}, "x"});
  put_together(folder_ / file_name(1), shards_[1]);
  EXPECT_TRUE(support::mentions(refusal(), {(folder_ / file_name(1)).string(), "'more'", index(), "name"}));
}

std::string refusal_of(const std::string& text) {
  return message_of<UserError>([&] { io::parse_weights_index(text, "'i'"); });
}

TEST(WeightsIndex, SaysWhichTensorIsInWhichFileAndPassesTheRestOver) {
  const auto tensors = io::parse_weights_index(
      R"({"metadata": {"total_size": 1e99, "weight_map": {"x": "y"}, "list": [[{"a": 1}], "b"]}, "other": [1, {"c": null}],
          "weight_map": {"a": "1.safetensors", "weight_map": "..2"}, "last": false})",
      "'i'");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name + " " + tensors[0].file, "a 1.safetensors");
  EXPECT_EQ(tensors[1].name + " " + tensors[1].file, "weight_map ..2");
}

TEST(WeightsIndex, FilesElsewhereAreRefused) {
  for (const std::string file : {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    const std::string text = refusal_of("{\"weight_map\": {\"a\": \"" + file + "\"}}");
    EXPECT_TRUE(support::mentions(text, {"'i'", "'a'", "in the file"})) << text;
    EXPECT_TRUE(support::mentions(text, {"shards", "index"})) << text;
  }
}

TEST(WeightsIndex, WhatIsNoIndexIsRefusedInOneSentence) {
  EXPECT_TRUE(support::mentions(refusal_of(""), {"'i'", "JSON", "UTF-8", "byte", "1"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"weight_map\": {\"a\": \"b\"}"), {"'i'", "JSON", "UTF-8", "byte", "26"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"metadata\": {\"total_size\": 1e400}}"), {"'i'", "JSON", "UTF-8", "byte", "33"}));
  EXPECT_TRUE(support::mentions(refusal_of("[]"), {"'i'", "index", "object"}));
  EXPECT_TRUE(support::mentions(refusal_of("3"), {"'i'", "index", "object"}));
  EXPECT_TRUE(support::mentions(refusal_of("{}"), {"'i'", "index", "'weight_map'"}));
  EXPECT_TRUE(
      support::mentions(refusal_of("{\"metadata\": {\"weight_map\": {\"a\": \"b\"}}}"), {"'i'", "index", "'weight_map'"}));
  EXPECT_EQ(refusal_of("{\"weight_map\": {}}"), "'i': 'weight_map' names no tensor");
  EXPECT_TRUE(support::mentions(refusal_of("{\"weight_map\": [\"a\"]}"), {"'i'", "'weight_map'", "object"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"weight_map\": 7}"), {"'i'", "'weight_map'", "object"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"weight_map\": {\"a\": {\"b\": \"c\"}}}"), {"'i'", "file of", "'a'", "text"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"weight_map\": {\"a\": 5}}"), {"'i'", "file of", "'a'", "text"}));
  EXPECT_TRUE(support::mentions(refusal_of(map_of({{"a", "x"}, {"b", "y"}, {"a", "y"}})), {"'i'", "'a'", "twice"}));
  EXPECT_EQ(refusal_of("{\"weight_map\": {\"a\": \"b\"}, \"weight_map\": {\"c\": \"d\"}}"), "'i' has 'weight_map' twice");
}

// Whatever the bytes: a refusal, or names that stay in the folder.
TEST(WeightsIndex, ChangedBytesAreRefusedOrGivePlainNames) {
  const std::string good = map_of({{"a.weight", "x-1.safetensors"}, {"a.bias", "x-2.safetensors"}});
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int change = 0; change <= i % 3; ++change) {
      const std::size_t at = random() % text.size();
      constexpr std::string_view kLikely = "\"{}[],:/\\.0e-";
      text[at] = i % 2 == 0 ? kLikely[random() % kLikely.size()] : static_cast<char>(random());
    }
    if (i % 7 == 0) text.resize(random() % text.size());
    try {
      for (const io::IndexedTensor& tensor : io::parse_weights_index(text, "'i'")) {
        ++accepted;
        EXPECT_EQ(fs::path(tensor.file).filename().string(), tensor.file);
        EXPECT_NE(tensor.file, "..");
      }
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(accepted, 100) << "the changes leave nothing to accept";
}

}  // namespace

}  // namespace snug::train
