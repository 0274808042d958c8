// snug bleu: the score of lines of text against reference lines.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "photos.h"
#include "support/temporary_folder.h"
#include <snug/version.h>

namespace snug::cli {
namespace {

using support::TemporaryFolder;

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// The example of sacrebleu's README.
class Bleu : public ::testing::Test {
 protected:
  Bleu() {
    write(folder_ / "h", "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n");
    write(folder_ / "a", "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n");
    write(folder_ / "b", "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n");
  }
  Ended bleu(std::vector<std::string> more) const {
    more.insert(more.begin(), {"bleu", "h", "--reference", "a", "--reference", "b"});
    return run_in(folder_.path(), more);
  }

  TemporaryFolder folder_;
};

TEST_F(Bleu, PrintsWhatSacrebleuPrints) {
  const Ended ended = bleu({});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:snug-" + std::string(kVersion) +
                           " = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)\n");
}

TEST_F(Bleu, JsonHasTheCountsAndTheRules) {
  const Ended ended = bleu({"--lowercase", "--tokenize", "none", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["references"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["sentences"], 3);
  EXPECT_EQ(json["totals"], (std::vector<int>{14, 11, 8, 5}));
  EXPECT_EQ(json["hypothesis_words"], 14);
  EXPECT_TRUE(json["signature"].get<std::string>().starts_with("nrefs:2|case:lc|eff:no|tok:none|smooth:exp|version:snug-"));
}

// What the script itself prints for these files.
TEST_F(Bleu, MultiBleuPrintsWhatMosesPrints) {
  const Ended ended = bleu({"--multi-bleu"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "BLEU = 49.19, 71.4/54.5/50.0/40.0 (BP=0.931, ratio=0.933, hyp_len=14, ref_len=15)\n");
}

}  // namespace
}  // namespace snug::cli
