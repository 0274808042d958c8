#include "report/page.h"

#include <gtest/gtest.h>

#include "report/json.h"
#include "report/timeline.h"
#include "tiny_plan.h"

namespace snug::report {
namespace {

using Json = nlohmann::ordered_json;

// What stands in the page's data element.
std::string data_of(const std::string& html) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = html.find(begin) + begin.size();
  return html.substr(from, html.find("</script>", from) - from);
}

int count_of(const std::string& text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Page, CarriesTheJsonItWasGiven) {
  Json json = plan_json(tiny_plan(), {.budget = Bytes(5000)});
  json["timeline"] = timeline_json(tiny_plan());
  Json carried = Json::parse(data_of(page(json)));
  EXPECT_FALSE(carried.at("version").get<std::string>().empty());
  carried.erase("version");
  EXPECT_EQ(carried, json);
}

TEST(Page, TextCannotEndTheDataElement) {
  const std::string hostile = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)>";
  const Json json{{"model", hostile}};
  const std::string html = page(json);
  EXPECT_EQ(html.find(hostile), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(count_of(html, "</script>"), count_of(page({{"model", "tiny"}}), "</script>"));
  EXPECT_EQ(Json::parse(data_of(html)).at("model"), hostile);
}

TEST(Page, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(Json::parse(data_of(page({{"run", "runs/\xff"}}))).at("run"), "runs/\xef\xbf\xbd");
}

// The policy lets only the page's own script and style in, and nothing out.
TEST(Page, HasAPolicyAndLoadsNothing) {
  const std::string html = page({{"model", "tiny"}});
  const auto policy = html.find("Content-Security-Policy");
  ASSERT_NE(policy, std::string::npos);
  const std::string text = html.substr(policy, html.find('>', policy) - policy);
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos) << text;
  EXPECT_NE(text.find("script-src 'sha256-"), std::string::npos) << text;
  EXPECT_EQ(text.find("unsafe"), std::string::npos) << text;
  for (const char* way_out : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_EQ(html.find(way_out), std::string::npos) << way_out;
  }
  for (const char* placeholder : {"@STYLE@", "@SCRIPT@", "@DATA@", "@SCRIPT_HASH@"}) {
    EXPECT_EQ(html.find(placeholder), std::string::npos) << placeholder;
  }
}

TEST(TrainingJson, LinesBecomeColumnsWithHolesWhereAFigureIsMissing) {
  const Json training = training_json(
      "{\"step\":1,\"loss\":2.5}\n"
      "{\"step\":1,\"test_loss\":2.25}\n"
      "{\"step\":2,\"loss\":null,\"note\":\"text\"}\n"
      "{\"step\":3,\"loss\":1.5}\n");
  EXPECT_EQ(
      training.at("columns"),
      (Json{{"step", {1, 1, 2, 3}}, {"loss", {2.5, nullptr, nullptr, 1.5}}, {"test_loss", {nullptr, 2.25, nullptr, nullptr}}}));
  EXPECT_EQ(training.at("one_line_in"), 1);
  EXPECT_EQ(training.at("damaged_lines"), 0);
}

TEST(TrainingJson, AFigureWithPartsBecomesAColumnAPart) {
  const Json training = training_json(
      "{\"step\":1,\"loss_scale\":1024,\"nonzeros\":{\"conv1\":20,\"conv2\":40,\"note\":\"x\"}}\n"
      "{\"step\":2,\"nonzeros\":{\"conv2\":50},\"nonzeros.conv2\":60}\n");
  EXPECT_EQ(
      training.at("columns"),
      (Json{{"step", {1, 2}}, {"loss_scale", {1024, nullptr}}, {"nonzeros.conv1", {20, nullptr}}, {"nonzeros.conv2", {40, 50}}}));
}

TEST(TrainingJson, DamagedLinesAreCountedAndLeftOut) {
  const Json training =
      training_json("{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo\nnonsense\n[1]\n{\"loss\":1}\n\n{\"step\":3,\"loss\":1}");
  EXPECT_EQ(training.at("columns"), (Json{{"step", {1, 3}}, {"loss", {2, 1}}}));
  EXPECT_EQ(training.at("damaged_lines"), 4);
}

TEST(TrainingJson, OfALongRunSomeLinesStayButEveryTestAndTheLast) {
  std::string metrics;
  for (int step = 0; step < 100; ++step) {
    metrics += "{\"step\":" + std::to_string(step) + ",\"loss\":1}\n";
    if (step == 41) metrics += "{\"step\":41,\"test_loss\":2}\n";
  }
  const Json training = training_json(metrics, 10);
  EXPECT_EQ(training.at("one_line_in"), 11);
  const Json& steps = training.at("columns").at("step");
  EXPECT_LE(steps.size(), 12U);
  EXPECT_EQ(steps.back(), 99);
  const Json& tests = training.at("columns").at("test_loss");
  EXPECT_EQ(std::count_if(tests.begin(), tests.end(), [](const Json& value) { return value == 2; }), 1);
}

// Between many steps the few lines with parts are not lost, and many of them do not fill the page.
TEST(TrainingJson, LinesWithPartsAreThinnedOutAmongThemselves) {
  const auto parts_kept = [](int every) {
    std::string metrics;
    for (int step = 0; step < 1000; ++step) {
      metrics += "{\"step\":" + std::to_string(step) + ",\"loss\":1}\n";
      if (step % every == 7) metrics += "{\"step\":" + std::to_string(step) + ",\"nonzeros\":{\"conv1\":5}}\n";
    }
    const Json column = training_json(metrics, 80).at("columns").at("nonzeros.conv1");
    return std::count_if(column.begin(), column.end(), [](const Json& value) { return value == 5; });
  };
  EXPECT_EQ(parts_kept(200), 5);
  EXPECT_EQ(parts_kept(10), 10);
}

TEST(TrainingJson, NothingGivesNoColumnsButSteps) { EXPECT_EQ(training_json("").at("columns"), (Json{{"step", Json::array()}})); }

}  // namespace
}  // namespace snug::report
