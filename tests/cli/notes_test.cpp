// What is done differently than asked, or left out, is said in a line on standard error.
#include <fstream>

#include <gtest/gtest.h>

#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Notes, FineTuningToOtherClassesSaysThatTheClassifierIsNew) {
  const TemporaryFolder folder;
  const std::string weights = (folder / "w.safetensors").string();
  const std::vector<std::string> train{"train", "small-cnn", "--batch", "20", "--steps", "1", "--threads", "1", "--out"};
  const auto run = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = train;
    arguments.push_back((folder / out).string());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_snug(arguments);
  };
  ASSERT_EQ(run("first", {}).exit_code, 0);
  ASSERT_EQ(run_snug({"export", (folder / "first").string(), "--to", weights}).exit_code, 0);
  const Ended tuned = run("second", {"--classes", "20", "--init", weights});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(contains(tuned.err, "snug: fc.weight and fc.bias of '" + weights +
                                      "' are for 10 classes, this run has 20: they start from random values\n"))
      << tuned.err;
  const Ended same = run("third", {"--init", weights});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_FALSE(contains(same.err, "random values")) << same.err;
  const Ended partial = run("fourth", {"--init", weights, "--init-partial"});
  EXPECT_EQ(partial.exit_code, 0);
  EXPECT_TRUE(contains(partial.err, "snug: 17 of the 17 tensors of 'small-cnn' come from '" + weights + "'\n")) << partial.err;
}

TEST(Notes, LimitThatNoPlanKeepsIsSaid) {
  for (const char* command : {"plan", "profile"}) {
    const Ended ended = run_snug({command, "small-cnn", "--batch", "20", "--threads", "1", "--checkpoint", "optimal:1"});
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_TRUE(support::mentions(ended.err, {"optimal:1", "1 byte"})) << ended.err;
    EXPECT_TRUE(ended.err.ends_with("), which this plan takes\n")) << ended.err;
  }
  EXPECT_EQ(run_snug({"plan", "small-cnn", "--batch", "20", "--threads", "1", "--checkpoint", "optimal:1GB"}).err, "");
}

TEST(Notes, FilesThatAreLeftOutOfTheDataAreCounted) {
  const TemporaryFolder folder;
  for (const char* split : {"train", "test"}) {
    std::filesystem::create_directories(folder / split / "cat");
    for (const char* name : {"a.webp", "b.webp"}) std::ofstream(folder / split / "cat" / name) << "x";
    // A black image of one pixel.
    const unsigned char png[] = {0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48,
                                 0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
                                 0x00, 0x90, 0x77, 0x53, 0xDE, 0x00, 0x00, 0x00, 0x0C, 0x49, 0x44, 0x41, 0x54, 0x78,
                                 0x9C, 0x63, 0x60, 0x60, 0x60, 0x00, 0x00, 0x00, 0x04, 0x00, 0x01, 0xF6, 0x17, 0x38,
                                 0x55, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
    std::ofstream(folder / split / "cat" / "c.png", std::ios::binary)
        .write(reinterpret_cast<const char*>(png), static_cast<std::streamsize>(sizeof png));
  }
  const Ended ended = run_snug({"data", "info", folder.string()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(support::mentions(ended.err, {"4", "folders", folder.string(), "a.webp"}));
}

}  // namespace
}  // namespace snug::cli
