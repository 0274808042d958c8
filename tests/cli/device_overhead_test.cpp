// What a GPU's driver takes beside the arena is said wherever training says what it took; tests/fake_cuda stands in for the GPU.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

constexpr std::int64_t kHeldBesideArena = 123'456'789;  // as the fake driver says

// `driver`: how it counts, as in fake_cuda_plugin.cpp.
Ended run_on_fake_gpu(const std::vector<std::string>& arguments, const char* driver) {
  return run_snug(arguments, [driver] {
    setenv("SNUG_CUDA_PLUGIN", SNUG_FAKE_CUDA_PLUGIN, 1);
    setenv("SNUG_FAKE_DRIVER", driver, 1);
  });
}

std::vector<std::string> train(const std::filesystem::path& out, const std::string& device = "cuda") {
  return {"train", "small-cnn", "--batch", "20", "--steps", "3", "--threads", "1", "--device", device, "--out", out.string()};
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DeviceOverhead, TrainSaysWhatTheDriverHoldsBesideTheArena) {
  const TemporaryFolder folder;
  std::vector<std::string> words = train(folder / "run");
  words.emplace_back("--json");
  const Ended ended = run_on_fake_gpu(words, "process");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json result = Json::parse(ended.out);
  EXPECT_EQ(result.at("device_overhead_bytes"), kHeldBesideArena);
  EXPECT_EQ(result.at("device_overhead_source"), "nvml process");
  EXPECT_GT(result.at("process_overhead_bytes").get<std::int64_t>(), 0);
}

TEST(DeviceOverhead, ClosingLinesSayItAndHowItWasFound) {
  const TemporaryFolder folder;
  const Ended counted = run_on_fake_gpu(train(folder / "counted"), "process");
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  EXPECT_NE(counted.out.find("\nthe driver holds 123.46 MB on the GPU beside the arena\n"), std::string::npos) << counted.out;
  const Ended grown = run_on_fake_gpu(train(folder / "grown"), "growth");
  ASSERT_EQ(grown.exit_code, 0) << grown.err;
  EXPECT_NE(grown.out.find("\nthe driver holds 123.46 MB on the GPU beside the arena, if no other process took or freed memory "
                           "there meanwhile\n"),
            std::string::npos)
      << grown.out;
}

TEST(DeviceOverhead, MetricsAndPageOfARunHaveIt) {
  const TemporaryFolder folder;
  const Ended ended = run_on_fake_gpu(train(folder / "run"), "process");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::string metrics = text_of(folder / "run" / "metrics.jsonl");
  EXPECT_NE(metrics.find(R"("device_overhead_bytes":123456789)"), std::string::npos) << metrics;
  const Ended report = run_on_fake_gpu({"report", (folder / "run").string(), "--json"}, "process");
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const Json columns = Json::parse(report.out).at("training").at("columns");
  EXPECT_EQ(columns.at("device_overhead_bytes").back(), kHeldBesideArena);
  EXPECT_GT(columns.at("process_overhead_bytes").back().get<std::int64_t>(), 0);
}

TEST(DeviceOverhead, EvaluationSaysIt) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_on_fake_gpu(train(folder / "run"), "process").exit_code, 0);
  const Ended ended = run_on_fake_gpu({"eval", (folder / "run").string(), "--json"}, "growth");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json result = Json::parse(ended.out);
  EXPECT_EQ(result.at("device_overhead_bytes"), kHeldBesideArena);
  EXPECT_EQ(result.at("device_overhead_source"), "nvml device growth");
  EXPECT_GT(result.at("process_overhead_bytes").get<std::int64_t>(), 0);
}

TEST(DeviceOverhead, SweepSaysItOfEveryPlan) {
  const std::vector<std::string> words{"sweep",    "small-cnn", "--batch", "20", "--device", "cuda",
                                       "--points", "2",         "--steps", "1",  "--costs",  "none"};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Ended ended = run_on_fake_gpu(as_json, "process");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json result = Json::parse(ended.out);
  EXPECT_EQ(result.at("plain").at("device_overhead_bytes"), kHeldBesideArena);
  for (const Json& point : result.at("points")) {
    EXPECT_EQ(point.at("device_overhead_bytes"), kHeldBesideArena);
    EXPECT_EQ(point.at("device_overhead_source"), "nvml process");
  }
  const Ended text = run_on_fake_gpu(words, "process");
  EXPECT_NE(text.out.find("\nat most the driver holds 123.46 MB on the GPU beside the arena\n"), std::string::npos) << text.out;
}

TEST(DeviceOverhead, FieldIsAbsentWhereNobodySaysIt) {
  const TemporaryFolder folder;
  for (const char* device : {"cpu", "cuda"}) {
    std::vector<std::string> words = train(folder / device, device);
    words.emplace_back("--json");
    const Ended ended = run_on_fake_gpu(words, "says nothing");
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_FALSE(Json::parse(ended.out).contains("device_overhead_bytes")) << device;
    EXPECT_EQ(text_of(folder / device / "metrics.jsonl").find("device_overhead"), std::string::npos) << device;
  }
}

}  // namespace
}  // namespace snug::cli
