// Smoothed labels: no prediction comes nearer to them than their own entropy.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

TEST(LabelSmoothing, BoundsTheLossAndStaysInTheRecipe) {
  const support::TemporaryFolder folder;
  const auto trained = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words{"train", "small-cnn", "--epochs", "5", "--json", "--out", (folder.path() / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run_snug(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return nlohmann::json::parse(ended.out);
  };
  const auto plain = trained("plain", {});
  const auto smooth = trained("smooth", {"--label-smoothing", "0.5"});
  const double entropy = -(0.55 * std::log(0.55) + 9 * 0.05 * std::log(0.05));
  EXPECT_LT(plain.at("test_loss").get<double>(), entropy);
  EXPECT_GT(smooth.at("test_loss").get<double>(), entropy);
  EXPECT_GT(smooth.at("test_accuracy").get<double>(), 0.6);
  EXPECT_EQ(smooth.at("planned_peak_bytes"), plain.at("planned_peak_bytes"));
  EXPECT_NE(text_of(folder.path() / "smooth" / "recipe.toml").find("label_smoothing = 0.5"), std::string::npos);
  EXPECT_EQ(text_of(folder.path() / "plain" / "recipe.toml").find("label_smoothing"), std::string::npos);
  const auto tested = nlohmann::json::parse(run_snug({"eval", (folder.path() / "smooth").string(), "--json"}).out);
  EXPECT_EQ(tested.at("test_accuracy"), smooth.at("test_accuracy"));
}

TEST(LabelSmoothing, MoreThanAllOfALabelIsRefused) {
  const Ended ended = run_snug({"train", "small-cnn", "--label-smoothing", "1"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("--label-smoothing"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace snug::cli
