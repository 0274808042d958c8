// The manual page and completion in shells: they know what --help knows.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "run_snug.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What stands in the left column of help.
std::vector<std::string> names_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line.substr(0, 2) != "  " || line[2] == ' ') continue;
    names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from + begin.size(), text.find(end, from + begin.size()) - from - begin.size());
}

std::vector<std::string> commands() { return names_in(between(run_snug({"--help"}).out, "\ncommands\n", "\nflags\n")); }

std::vector<std::string> flags_in_help(const std::vector<std::string>& arguments) {
  const std::string help = run_snug(arguments).out;
  std::vector<std::string> flags = names_in(help.substr(0, help.find("\nexamples\n")));
  std::erase_if(flags, [](const std::string& name) { return !name.starts_with("--"); });
  return flags;
}

// Without what roff reads: fonts, and backslashes before dashes.
std::string plain(const std::string& roff) { return std::regex_replace(roff, std::regex(R"(\\f[BIR]|\\(?=-))"), ""); }

TEST(ManPage, HasEveryFlagOfEveryCommand) {
  const Ended ended = run_snug({"--man"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(ended.out.starts_with(".TH SNUG 1 "));
  const std::string page = plain(ended.out);
  for (const std::string& flag : flags_in_help({"--help"})) EXPECT_TRUE(contains(page, ".TP\n" + flag)) << flag;
  ASSERT_GE(commands().size(), 8);
  for (const std::string& command : commands()) {
    const std::string section = between(page, ".SS \"snug " + command + " ", ".EE\n");
    for (const std::string& flag : flags_in_help({command, "--help"})) {
      EXPECT_TRUE(contains(section, flag)) << command << " " << flag;
      EXPECT_TRUE(contains(page, ".TP\n" + flag + " ") || contains(page, ".TP\n" + flag + "\n")) << flag;
    }
  }
}

// groff takes a line that begins with a dot or a quote for a request, and a backslash for the beginning of one.
TEST(ManPage, HoldsNoRequestsThatItDoesNotMean) {
  std::istringstream lines(run_snug({"--man"}).out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.empty());
    EXPECT_FALSE(line.starts_with("'")) << line;
    if (line.starts_with(".")) {
      const std::string request = line.substr(1, line.find(' ') - 1);
      EXPECT_TRUE(contains(" TH SH SS TP P EX EE br nh ad ", " " + request + " ")) << line;
    }
  }
}

TEST(Completion, HasEveryFlagOfEveryCommand) {
  for (const char* shell : {"bash", "zsh"}) {
    const Ended ended = run_snug({"--completion", shell});
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_EQ(ended.err, "");
    for (const std::string& command : commands()) {
      const std::string flags = std::string(shell) == "bash" ? between(ended.out, "    " + command + ") echo ", ";;\n")
                                                             : between(ended.out, "        " + command + ")\n", ";;\n");
      for (const std::string& flag : flags_in_help({command, "--help"}))
        EXPECT_TRUE(contains(flags, flag + " ") || contains(flags, flag + "=[") || contains(flags, flag + "["))
            << command << flag;
    }
    for (const std::string& flag : flags_in_help({"--help"})) EXPECT_TRUE(contains(ended.out, flag)) << flag;
  }
}

TEST(Completion, OtherShellsAreBadInput) {
  const Ended ended = run_snug({"--completion", "fish"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"--completion", "zsh", "'fish'"}));
  EXPECT_EQ(ended.out, "");
}

// What bash offers when Tab is pressed behind the last of the words, in a folder with a few files.
class Bash : public testing::Test {
 protected:
  Bash() {
    std::ofstream(folder_.path() / "recipe.toml");
    std::ofstream(folder_.path() / "notes.txt");
    std::filesystem::create_directory(folder_.path() / "my runs");
    std::ofstream(folder_.path() / "completion") << run_snug({"--completion", "bash"}).out;
  }

  std::vector<std::string> offers(const std::vector<std::string>& words) const {
    std::ofstream script(folder_.path() / "script");
    script << "cd '" << folder_.path().string() << "' && source ./completion && COMP_WORDS=(snug";
    for (const std::string& word : words) script << " '" << word << "'";
    script << ") COMP_CWORD=" << words.size() << " && _snug\nfor word in \"${COMPREPLY[@]}\"; do echo \"$word\"; done\n";
    script.close();
    const std::string command = "bash --norc '" + (folder_.path() / "script").string() + "'";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0);
    std::istringstream lines(out);
    std::vector<std::string> offered;
    for (std::string line; std::getline(lines, line);) offered.push_back(line);
    std::ranges::sort(offered);
    return offered;
  }

 private:
  support::TemporaryFolder folder_;
};

using Words = std::vector<std::string>;

TEST_F(Bash, KnowsCommandsAndFlags) {
  EXPECT_EQ(offers({"pl"}), Words{"plan"});
  EXPECT_EQ(offers({"--comp"}), Words{"--completion"});
  EXPECT_EQ(offers({"--completion", ""}), (Words{"bash", "zsh"}));
  EXPECT_EQ(offers({"train", "small-cnn", "--prec"}), Words{"--precision"});
  EXPECT_EQ(offers({"plan", "small-cnn", "--epo"}), Words{});
  EXPECT_EQ(offers({"train", "--plan", "a.plan", "--js"}), Words{"--json"});
}

TEST_F(Bash, KnowsTheValuesOfChoices) {
  const Words precisions{"bf16", "fp16", "fp32"};
  EXPECT_EQ(offers({"train", "small-cnn", "--precision", ""}), precisions);
  EXPECT_EQ(offers({"train", "small-cnn", "--precision", "="}), precisions);
  EXPECT_EQ(offers({"train", "small-cnn", "--precision", "=", "b"}), Words{"bf16"});
  EXPECT_EQ(offers({"sweep", "small-cnn", "--offload", ""}), (Words{"no", "yes"}));
  EXPECT_EQ(offers({"profile", "--accounting", ""}), (Words{"paper", "real"}));
  EXPECT_EQ(offers({"plan", "--dump-after", "share"}), Words{"share_bytes"});
  EXPECT_EQ(offers({"plan", "--checkpoint", "optimal", ":", "24MB", "--js"}), Words{"--json"});
  EXPECT_EQ(offers({"train", "--allow", "exact,com"}), Words{"exact,compressed"});
  EXPECT_EQ(offers({"train", "--batch", ""}), Words{});
}

TEST_F(Bash, KnowsModelsFilesAndFolders) {
  EXPECT_EQ(offers({"train", "small"}), Words{"small-cnn"});
  EXPECT_EQ(offers({"train", "re"}), (Words{"recipe.toml", "resnet-18", "resnet-50"}));
  EXPECT_EQ(offers({"plan", "--html", "no"}), Words{"notes.txt"});
  EXPECT_EQ(offers({"eval", ""}), Words{"my runs"});
  EXPECT_EQ(offers({"train", "--data", ""}), (Words{"cifar10", "embedded", "embedded-text", "my runs"}));
  EXPECT_TRUE(contains(fmt::format("{}", fmt::join(offers({"data", ""}), " ")), "get"));
  EXPECT_EQ(offers({"data", "get", "ci"}), Words{"cifar10"});
}

}  // namespace
}  // namespace snug::cli
