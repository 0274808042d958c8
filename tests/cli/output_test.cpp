// What reaches a person, and what happens when standard output cannot take it.

#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli.h"
#include "frontend/zoo.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "report/chart.h"
#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"
#include <snug/version.h>

namespace snug::cli {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_fits_a_terminal(const std::string& text) {
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(report::columns_of(line), 80) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
  }
}

TEST(Output, HelpTeachesWithExamplesAndModels) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"-h"}, {"plan", "--help"}, {"plan", "-h"}, {"profile", "--help"}}) {
    const Ended ended = run_snug(arguments);
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_EQ(ended.err, "");
    EXPECT_TRUE(contains(ended.out, "  snug p")) << ended.out;
    for (const frontend::ZooEntry& entry : frontend::zoo_entries()) EXPECT_TRUE(contains(ended.out, std::string(entry.pattern)));
    expect_fits_a_terminal(ended.out);
  }
}

TEST(Output, HelpOfACommandListsItsFlags) {
  const std::string plan = run_snug({"plan", "--help"}).out;
  for (const char* flag : {"MODEL", "--batch N", "--microbatch N", "--checkpoint", "--precision", "--classes", "--image-size",
                           "--freeze", "--threads", "--json", "--kernels", "--dump-after", "--disable-pass", "--help"}) {
    EXPECT_TRUE(contains(plan, std::string("\n  ") + flag)) << flag;
  }
  EXPECT_FALSE(contains(plan, "--accounting"));
  EXPECT_TRUE(contains(run_snug({"profile", "--help"}).out, "\n  --accounting"));
}

TEST(Output, HelpOfEveryCommandFitsATerminal) {
  for (const char* command : {"train", "plan", "profile", "sweep", "eval", "predict", "export", "report", "data"}) {
    expect_fits_a_terminal(run_snug({command, "--help"}).out);
  }
}

// What a method is called elsewhere leads to its flag.
TEST(Output, HelpNamesMethodsAsUsersKnowThem) {
  const std::string help = run_snug({"train", "--help"}).out;
  for (const auto& [flag, name] : {std::pair<std::string, std::string>{"--microbatch N", "gradient accumulation"},
                                   {"--checkpoint STRATEGY", "gradient checkpointing"},
                                   {"--precision TYPE", "low precision"},
                                   {"--offload YES|NO", "CPU offload"},
                                   {"--batch N", "batch size"},
                                   {"--augment YES|NO", "data augmentation"},
                                   {"--clip-norm N", "gradient clipping"},
                                   {"--schedule KIND", "learning-rate schedule"},
                                   {"--weight-decay D", "weight decay"},
                                   {"--nonzero SHARE", "pruning"},
                                   {"--init FILE", "pretrained weights"}}) {
    const std::size_t at = help.find("\n  " + flag);
    ASSERT_NE(at, std::string::npos) << flag;
    EXPECT_TRUE(contains(help.substr(at, help.find("\n  -", at + 1) - at), name)) << flag;
  }
}

TEST(Output, EveryExampleInTheHelpWorks) {
  const support::TemporaryFolder folder;  // some write files
  const auto go_there = [&] {
    if (chdir(folder.path().c_str()) != 0) _exit(126);
  };
  for (const char* command : {"plan", "profile"}) {
    const std::string help = run_snug({command, "--help"}).out;
    std::istringstream lines(help.substr(help.find("\nexamples\n")));
    int examples = 0;
    for (std::string line; std::getline(lines, line) && line != "models";) {
      std::istringstream words(line);
      std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      if (arguments.size() < 2) continue;
      arguments.erase(arguments.begin());  // "snug"
      EXPECT_EQ(run_snug(arguments, go_there).exit_code, 0) << line;
      ++examples;
    }
    EXPECT_EQ(examples, 3);
  }
}

TEST(Output, VersionIsOneLine) {
  const Ended ended = run_snug({"--version"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, std::string("snug ") + std::string(kVersion) + "\n");
}

TEST(Output, PlanAndProfileOfEveryModelFitATerminal) {
  for (const char* model : {"wrn-28-2", "preresnet-110", "preresnet-29", "resnet-18", "resnet-50", "vgg-16", "small-cnn"}) {
    for (const char* command : {"plan", "profile"}) {
      const Ended ended = run_snug({command, model, "--batch", "20", "--microbatch", "6"});
      EXPECT_EQ(ended.exit_code, 0) << model << ": " << ended.err;
      EXPECT_EQ(ended.err, "");
      EXPECT_TRUE(ended.out.starts_with(std::string(model) + ", batch 20 in microbatches of 6\n"));
      EXPECT_TRUE(contains(ended.out, "\nPlanned peak "));
      expect_fits_a_terminal(ended.out);
    }
  }
}

TEST(Output, KernelsFollowThePlan) {
  const std::string plan = run_snug({"plan", "small-cnn", "--batch", "8"}).out;
  const std::string with = run_snug({"plan", "small-cnn", "--batch", "8", "--kernels"}).out;
  EXPECT_FALSE(contains(plan, "Kernels"));
  EXPECT_TRUE(contains(with, "\nKernels of all sections\n"));
  EXPECT_TRUE(contains(with, "conv2d_grad_weight"));
}

TEST(Output, DumpIsTheProgramAndNothingElse) {
  const Ended ended = run_snug({"plan", "small-cnn", "--batch", "8", "--microbatch", "4", "--dump-after", "share_bytes"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(print(parse_program(ended.out, ops::find)), ended.out);
  EXPECT_TRUE(ended.out.starts_with("program small-cnn batch 8 microbatch 4\n"));
  EXPECT_TRUE(contains(ended.out, " using "));
  EXPECT_FALSE(contains(run_snug({"plan", "small-cnn", "--batch", "8", "--dump-after", "eliminate_dead_nodes"}).out, " using "));
}

const std::vector<std::vector<std::string>> kWriters{{"--help"},
                                                     {"--version"},
                                                     {"plan", "--help"},
                                                     {"plan", "small-cnn", "--batch", "8"},
                                                     {"plan", "small-cnn", "--batch", "8", "--json"},
                                                     {"plan", "small-cnn", "--batch", "8", "--dump-after", "share_bytes"},
                                                     {"profile", "small-cnn", "--batch", "8"}};

TEST(Output, AFullDiskIsAFailure) {
  for (const auto& arguments : kWriters) {
    const Ended ended = run_snug(arguments, [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); });
    EXPECT_EQ(ended.exit_code, 1) << arguments.front();
    EXPECT_TRUE(support::mentions(ended.err, {"standard output", "No space left"}));
  }
}

TEST(Output, AClosedStandardOutputIsAFailure) {
  for (const auto& arguments : kWriters) {
    const Ended ended = run_snug(arguments, [] { close(STDOUT_FILENO); });
    EXPECT_EQ(ended.exit_code, 1) << arguments.front();
    EXPECT_TRUE(support::mentions(ended.err, {"standard output", "Bad file descriptor"}));
  }
}

TEST(Output, AReaderThatLeavesIsNoCrash) {
  for (const auto& arguments : kWriters) {
    const Ended ended = run_snug(arguments, [] {
      int ends[2];
      if (pipe(ends) != 0) _exit(126);
      close(ends[0]);
      dup2(ends[1], STDOUT_FILENO);
    });
    EXPECT_EQ(ended.exit_code, 0) << arguments.front();
    EXPECT_EQ(ended.err, "");
  }
}

// The command also runs inside another program, and leaves its exceptions inside.
TEST(Output, RunReturnsTheExitCode) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(run({"plan"}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string("snug ") + std::string(kVersion) + "\n");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().starts_with("snug: "));
}

}  // namespace
}  // namespace snug::cli
