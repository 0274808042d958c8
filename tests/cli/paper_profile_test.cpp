// 'snug profile --accounting paper' as a user sees it. The figures are those of tests/analysis/paper_accounting_test.cpp.

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/messages.h"

namespace snug::cli {
namespace {

using Json = nlohmann::ordered_json;

Json paper_profile(std::vector<std::string> more) {
  std::vector<std::string> arguments{"profile", "wrn-28-2", "--batch", "100", "--accounting", "paper", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ended ended = run_snug(arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  return Json::parse(ended.out);
}

TEST(PaperProfile, BaselineAndItsClasses) {
  const Json json = paper_profile({});
  EXPECT_EQ(json.at("accounting"), "paper");
  EXPECT_EQ(json.at("parameters"), 1'456'858);
  EXPECT_EQ(json.at("total_bytes"), 404'802'488);
  EXPECT_EQ(json.at("model_bytes"), 5'841'896);
  EXPECT_EQ(json.at("optimizer_bytes"), 11'683'792);
  EXPECT_EQ(json.at("activation_bytes"), 387'276'800);
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : json.at("by_class").items()) sum += bytes.get<std::int64_t>();
  EXPECT_EQ(sum, 404'802'488);
  EXPECT_EQ(json.at("peak").at("layer"), "head.relu");
  EXPECT_EQ(json.at("reduction"), 1.0);
  EXPECT_EQ(json.at("flops_ratio"), 1.0);
  EXPECT_EQ(json.at("flops").at("per_image").at("forward"), 429'599'232);
}

TEST(PaperProfile, EveryStrategyStandsBesideTheAskedOne) {
  const Json json = paper_profile({"--checkpoint", "residual-3*"});
  EXPECT_EQ(json.at("checkpoint"), "residual-3*");
  std::vector<std::string> names;
  for (const Json& one : json.at("strategies")) names.push_back(one.at("checkpoint"));
  EXPECT_EQ(names, (std::vector<std::string>{"none", "no-bn", "every-4", "every-16", "residual-1", "residual-2", "residual-1*",
                                             "residual-2*", "residual-3*"}));
  EXPECT_EQ(json.at("strategies").back().at("total_bytes"), json.at("total_bytes"));
}

TEST(PaperProfile, TheSmallestAccurateSettingOfTheReport) {
  const Json json =
      paper_profile({"--checkpoint", "residual-2*", "--microbatch", "10", "--precision", "fp16", "--nonzero", "0.3"});
  EXPECT_NEAR(json.at("total_bytes").get<double>(), 6'672'418.825, 1);
  EXPECT_NEAR(json.at("reduction").get<double>(), 60.7, 0.05);
  EXPECT_EQ(json.at("baseline_bytes"), 404'802'488);
  EXPECT_NEAR(json.at("flops_ratio").get<double>(), 1.3102, 0.00005);
  EXPECT_EQ(json.at("microbatch"), 10);
  EXPECT_EQ(json.at("nonzero"), 0.3);
}

TEST(PaperProfile, ARecipeIsRefused) {
  const Ended ended = run_snug({"profile", "recipe.toml", "--batch", "4", "--accounting", "paper"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(support::mentions(ended.err, {"--accounting", "'recipe.toml'", "plans"}));
}

TEST(PaperProfile, TextFitsATerminalForEveryModel) {
  for (const char* model : {"wrn-28-2", "preresnet-110", "resnet-50", "vgg-16", "small-cnn"}) {
    const Ended ended = run_snug({"profile", model, "--batch", "20", "--microbatch", "6", "--accounting", "paper", "--precision",
                                  "fp16", "--nonzero", "0.25", "--checkpoint", "no-bn"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(ended.out.starts_with(std::string(model) + ", batch 20 in microbatches of 6\nfp16, checkpointing no-bn"));
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) {
      std::size_t columns = 0;  // bars are of characters that take three bytes and one column
      for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
      EXPECT_LE(columns, 80U) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
    }
  }
}

}  // namespace
}  // namespace snug::cli
