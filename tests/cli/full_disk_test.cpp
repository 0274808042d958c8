#include <filesystem>
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

}  // namespace
}  // namespace snug::cli
