// snug data check: every bad file on a line of its own.
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

TEST(DataCheck, GoodDataEndsWithZero) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  const Ended ended = run_in(folder.path(), {"data", "check", "photos"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "photos: all 24 files can be read\n");
  const Json json = Json::parse(run_in(folder.path(), {"data", "check", "photos", "--json"}).out);
  EXPECT_EQ(json.at("files"), 24);
  EXPECT_EQ(json.at("bad"), 0);
  EXPECT_TRUE(json.at("bad_files").empty());
  EXPECT_EQ(run_in(folder.path(), {"data", "check", "embedded"}).exit_code, 0);
}

TEST(DataCheck, EachBadFileHasALineAndTheEndTheirNumber) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  spoil(folder / "photos/train/a/3.png");
  spoil(folder / "photos/test/b/4.png");
  const Ended ended = run_in(folder.path(), {"data", "check", "photos"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out,
            "photos/train/a/3.png is neither a PNG nor a JPEG file\nphotos/test/b/4.png is neither a PNG nor a JPEG file\n");
  EXPECT_TRUE(support::mentions(ended.err, {"2 of the 24 files", "photos"})) << ended.err;
  const Ended as_json = run_in(folder.path(), {"data", "check", "photos", "--json"});
  EXPECT_EQ(as_json.exit_code, 2);
  const Json json = Json::parse(as_json.out);  // one object: what was found, and no error beside it
  EXPECT_EQ(json.at("bad"), 2);
  EXPECT_EQ(json.at("bad_files")[0].at("file"), "photos/train/a/3.png");
  EXPECT_TRUE(
      support::mentions(json.at("bad_files")[1].at("reason").get<std::string>(), {"photos/test/b/4.png", "PNG", "JPEG", "file"}));
}

TEST(DataCheck, WhatIsNoDataIsBadInput) {
  const TemporaryFolder folder;
  const Ended ended = run_in(folder.path(), {"data", "check", "nowhere", "--json"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(Json::parse(ended.out).at("error").at("kind"), "bad_input");
}

}  // namespace
}  // namespace snug::cli
