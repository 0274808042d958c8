// Sparse training as a user runs it.
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "run_snug.h"
#include "snapshot_tensors.h"
#include "support/temporary_folder.h"
#include "train/snapshot.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

std::filesystem::path write_recipe(const TemporaryFolder& folder, const std::string& steps) {
  const auto path = folder / ("recipe" + steps + ".toml");
  std::ofstream(path) << "model = \"small-cnn\"\nbatch = 20\nthreads = 1\nseed = 3\nsteps = " << steps
                      << "\n[sparse]\nnonzero = 0.2\nrewire_every = [4]\nrewire_milestones = []\n";
  return path;
}

std::vector<Json> rewirings_of(const std::filesystem::path& run) {
  std::ifstream file(run / "metrics.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    if (json.contains("nonzeros")) lines.push_back(json);
  }
  return lines;
}

TEST(SparseCommand, RewiresAsItsRecipeSaysAndSaysWhereTheNonzerosAre) {
  const TemporaryFolder folder;
  const Ended ended = run_snug({"train", write_recipe(folder, "12").string(), "--out", (folder / "run").string(), "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = Json::parse(ended.out);
  EXPECT_EQ(json.at("nonzero"), 0.2);
  EXPECT_EQ(json.at("measured_peak_bytes"), json.at("planned_peak_bytes"));
  const std::vector<Json> rewirings = rewirings_of(folder / "run");
  ASSERT_EQ(rewirings.size(), 3U);
  EXPECT_EQ(rewirings[0].at("step"), 4);
  for (const Json& line : rewirings) {
    const Json& nonzeros = line.at("nonzeros");
    EXPECT_EQ(nonzeros.size(), 2U);
    // 0.2 of 32*16*9 + 64*32*9
    EXPECT_EQ(nonzeros.at("conv2.weight").get<int>() + nonzeros.at("conv3.weight").get<int>(), 4608);
    EXPECT_GE(line.at("pruned").get<int>(), 0);
    EXPECT_GT(line.at("threshold").get<double>(), 0);
  }
}

// One pool of nonzeros serves all layers: it is no layer's own, nor are its gradient and momentum.
TEST(SparseCommand, TheStoreOfAllLayersIsARowOfItsOwnInAProfile) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--nesterov", "no", "--drop-gradients"}}) {
    std::vector<std::string> arguments{"profile", "small-cnn", "--batch", "20", "--nonzero", "0.2", "--threads", "1", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_snug(arguments);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    std::map<std::string, Json> layers;
    const Json profile = Json::parse(ended.out);
    for (const Json& layer : profile.at("layers")) layers[layer.at("name")] = layer;
    ASSERT_TRUE(layers.contains("sparse"));
    EXPECT_EQ(layers["sparse"].at("parameters"), 4608);
    const Json& bytes = layers["sparse"].at("by_class");
    EXPECT_GT(bytes.at("model"), 4608 * 4);  // and where they are
    EXPECT_EQ(bytes.at("optimizer"), 4608 * 4);
    EXPECT_EQ(bytes.value("gradient", 0), more.empty() ? 4608 * 4 : 0);
    for (const char* name : {"conv2", "conv3"}) EXPECT_EQ(layers[name].at("parameters"), 0) << name;
  }
}

TEST(SparseCommand, ARunInTwoPartsComesToTheSameBits) {
  const TemporaryFolder folder;
  const auto whole = folder / "whole";
  const auto parts = folder / "parts";
  ASSERT_EQ(run_snug({"train", write_recipe(folder, "10").string(), "--out", whole.string()}).exit_code, 0);
  ASSERT_EQ(run_snug({"train", write_recipe(folder, "5").string(), "--out", parts.string()}).exit_code, 0);
  // Only the length is another.
  std::ifstream in(whole / "recipe.toml");
  std::ofstream(parts / "recipe.toml") << in.rdbuf();
  const Ended ended = run_snug({"train", "--out", parts.string(), "--resume"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ASSERT_FALSE(tensors_of(whole).empty());
  EXPECT_EQ(tensors_of(parts), tensors_of(whole));
  EXPECT_EQ(rewirings_of(parts), rewirings_of(whole));
}

TEST(SparseCommand, ExportsDenseTensors) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_snug({"train", write_recipe(folder, "2").string(), "--out", run.string()}).exit_code, 0);
  const Ended ended = run_snug({"export", run.string(), "--to", (folder / "w").string()});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const io::SafetensorsReader reader(folder / "w");
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const io::TensorInfo& tensor : reader.header().tensors) shapes[tensor.name] = {tensor.shape.begin(), tensor.shape.end()};
  EXPECT_EQ(shapes.at("conv3.weight"), (std::vector<std::int64_t>{64, 32, 3, 3}));
  EXPECT_FALSE(shapes.contains("sparse.weight"));
  EXPECT_EQ(run_snug({"eval", run.string()}).exit_code, 0);
}

}  // namespace
}  // namespace snug::cli
