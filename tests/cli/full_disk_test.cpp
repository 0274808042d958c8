#include <filesystem>
#include <fstream>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using support::TemporaryFolder;

namespace fs = std::filesystem;

// A disk without room for a snapshot: the run ends with a sentence, and the snapshots before it are whole.
TEST(FullDisk, EndsTheRunWithASentenceAndKeepsWhatWasSaved) {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  // No file may grow beyond 64 KB: enough for everything but the snapshots.
  const Ended ended = run_snug({"train", "small-cnn", "--batch", "20", "--steps", "2", "--threads", "1", "--out", run}, [] {
    const rlimit limit{.rlim_cur = 65'536, .rlim_max = 65'536};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"'" + run + "/snapshots'", "full", "'step_000000002.safetensors'", "limit",
                                            "snug train --out " + run + " --resume\n"}));
  EXPECT_TRUE(fs::is_empty(run + "/snapshots")) << "no part of a snapshot is left behind";
}

// Tokens lie in a temporary file, which is not where the run is.
TEST(FullDisk, NoRoomForTokensNamesTheFolderOfTemporaryFiles) {
  const TemporaryFolder folder;
  const std::string text = (folder / "a.txt").string(), tokenizer = (folder / "bpe").string();
  std::ofstream file(text);
  for (int i = 0; i < 100'000; ++i) file << "low " << i;
  file.close();
  ASSERT_EQ(run_snug({"data", "learn", text, "--vocabulary", "300", "--out", tokenizer}).exit_code, 0);
  const Ended ended = run_snug({"data", "info", text, "--tokenizer", tokenizer}, [] {
    const rlimit limit{.rlim_cur = 65'536, .rlim_max = 65'536};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"temporary file", "tokens", fs::temp_directory_path().string(), "TMPDIR"}))
      << ended.err;
}

}  // namespace
}  // namespace snug::cli
