// What eval says of a run, class by class.
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "photos.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using support::TemporaryFolder;

Ended train_on(const fs::path& folder, const std::string& data, const std::string& steps) {
  return run_in(folder, {"train", "small-cnn", "--data", data, "--batch", "8", "--microbatch", "4", "--threads", "1", "--out",
                         "run", "--steps", steps, "--learning-rate", "0.02"});
}

// The same scores as predict's: what it calls right is right here.
TEST(Eval, ClassesAddUpToTheWholeAndAgreeWithPredictions) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  ASSERT_EQ(train_on(folder.path(), "photos", "3").exit_code, 0);
  const Ended ended = run_in(folder.path(), {"eval", "run", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = Json::parse(ended.out);
  ASSERT_EQ(json.at("per_class").size(), 2U);
  double correct = 0;
  for (const Json& each : json.at("per_class")) {
    EXPECT_EQ(each.at("examples"), 4);
    correct += each.at("accuracy").get<double>() * 4;
    std::vector<std::string> words{"predict", "run", "--json"};
    const std::string name = each.at("class");
    for (const int i : {0, 2, 4, 6}) words.push_back("photos/test/" + name + "/" + std::to_string(i) + ".png");
    const Ended predicted = run_in(folder.path(), words);
    const Json answers = Json::parse(predicted.out).at("predictions");
    const auto right = std::ranges::count_if(answers, [&](const Json& answer) { return answer.at("class") == name; });
    EXPECT_EQ(static_cast<double>(right), each.at("accuracy").get<double>() * 4);
  }
  EXPECT_NEAR(correct / 8, json.at("test_accuracy").get<double>(), 1e-12);
}

TEST(Eval, AClassWithoutTestImagesHasNoAccuracy) {
  const TemporaryFolder folder;
  make_photos(folder / "photos");
  fs::remove_all(folder / "photos/test/b");
  ASSERT_EQ(train_on(folder.path(), "photos", "1").exit_code, 0);
  const Json json = Json::parse(run_in(folder.path(), {"eval", "run", "--json"}).out);
  EXPECT_EQ(json.at("per_class")[1].at("examples"), 0);
  EXPECT_TRUE(json.at("per_class")[1].at("accuracy").is_null());
  EXPECT_EQ(run_in(folder.path(), {"eval", "run"}).out.find(" b\n"), std::string::npos);
}

TEST(Eval, TextShowsTheTenWorstClassesWorstFirst) {
  const TemporaryFolder folder;
  for (int c = 0; c < 12; ++c) {
    for (int i = 0; i < 4; ++i) {
      const auto shade = static_cast<std::uint8_t>(20 * c);
      for (const char* split : {"train", "test"})
        support::write_plain_png(folder / "photos" / split / ("class" + std::to_string(c)) / (std::to_string(i) + ".png"), shade,
                                 static_cast<std::uint8_t>(255 - shade), static_cast<std::uint8_t>(i));
    }
  }
  ASSERT_EQ(train_on(folder.path(), "photos", "5").exit_code, 0);
  std::istringstream lines(run_in(folder.path(), {"eval", "run"}).out);
  std::string line;
  std::getline(lines, line);  // the whole
  std::getline(lines, line);  // the heading
  double last = 0;
  int classes = 0;
  while (std::getline(lines, line)) {
    ++classes;
    EXPECT_NE(line.find("class"), std::string::npos) << line;
    EXPECT_GE(std::stod(line), last);
    last = std::stod(line);
  }
  EXPECT_EQ(classes, 10);
  EXPECT_EQ(Json::parse(run_in(folder.path(), {"eval", "run", "--json"}).out).at("per_class").size(), 12U);
}

}  // namespace
}  // namespace snug::cli
