// Paths are any bytes, may lead through links or to devices, and a home need not be there.
#include <filesystem>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;
using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(OddPaths, RunWhosePathIsNotUtf8IsTrainedTestedExportedAndReportedAsJson) {
  const TemporaryFolder folder;
  const std::string run = (folder / "bad\xFF").string();
  const std::string shown = (folder / "bad\xEF\xBF\xBD").string();  // U+FFFD
  const Ended trained =
      run_snug({"train", "small-cnn", "--batch", "20", "--steps", "1", "--threads", "1", "--out", run, "--json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(Json::parse(trained.out)["run"], shown);
  const Ended tested = run_snug({"eval", run, "--json"});
  ASSERT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_EQ(Json::parse(tested.out)["run"], shown);
  const Ended exported = run_snug({"export", run, "--to", run + "/w\xFF", "--json"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(Json::parse(exported.out)["to"], shown + "/w\xEF\xBF\xBD");
  EXPECT_TRUE(std::filesystem::exists(run + "/w\xFF"));
  const Ended reported = run_snug({"report", run, "--json"});
  ASSERT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_EQ(Json::parse(reported.out)["run"], shown);
}

TEST(OddPaths, ControlCharactersOfFileNamesAreNotPrinted) {
  const TemporaryFolder folder;
  const Ended ended = run_snug({"plan", "small-cnn", "--batch", "4", "--html", (folder / "a\x1B[2Jb").string()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(contains(ended.out, "a?[2Jb: the memory report"));
  EXPECT_FALSE(contains(ended.out, "\x1B"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a\x1B[2Jb"));
}

TEST(OddPaths, PlanFollowsALinkAndPrintsToStandardOutput) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("target", folder / "link");
  const std::vector<std::string> plan{"plan", "small-cnn", "--batch", "4", "--dump-after", "share_bytes", "--save"};
  std::vector<std::string> to_link = plan;
  to_link.push_back((folder / "link").string());
  EXPECT_EQ(run_snug(to_link).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  const std::string saved = text_of(folder / "target");
  std::vector<std::string> to_output = plan;
  to_output.emplace_back("/dev/stdout");
  const Ended ended = run_snug(to_output);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with(saved)) << "then comes what is printed";
  EXPECT_GT(ended.out.size(), saved.size());
}

TEST(OddPaths, PageGoesIntoAPipe) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string page;
  std::thread reader([&] { page = text_of(pipe); });
  const Ended ended = run_snug({"plan", "small-cnn", "--batch", "4", "--html", pipe.string()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  if (!std::filesystem::is_fifo(pipe)) std::filesystem::remove(pipe);
  reader.join();
  EXPECT_TRUE(contains(page, "<html"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(OddPaths, SweepRefusesAPageThatCannotBeWrittenBeforeItMeasures) {
  const TemporaryFolder folder;
  const Ended ended = run_snug({"sweep", "small-cnn", "--batch", "4", "--html", folder.string()});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"'" + folder.string() + "'", "is a folder"}));
}

TEST(OddPaths, WithoutAHomeOnlyMeasuringNeedsOne) {
  const auto homeless = [] {
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
  };
  const Ended planned = run_snug({"plan", "small-cnn", "--batch", "4"}, homeless);
  EXPECT_EQ(planned.exit_code, 0);
  EXPECT_EQ(planned.err, "");
  const Ended measured = run_snug({"plan", "small-cnn", "--batch", "4", "--measure-costs"}, homeless);
  EXPECT_EQ(measured.exit_code, 2);
  EXPECT_TRUE(support::mentions(measured.err, {"HOME", "--costs"}));
}

}  // namespace
}  // namespace snug::cli
