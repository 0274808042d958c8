// The zoo's names and shapes against torchvision's (tests/golden/torchvision_names.json): weights move both ways only by name.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frontend/zoo.h"

namespace snug::frontend {

namespace {

using NamedShape = std::pair<std::string, std::vector<std::int64_t>>;

class TorchvisionNames : public testing::TestWithParam<const char*> {};

TEST_P(TorchvisionNames, ParametersAndStatisticsAreTorchvisionsInItsOrder) {
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/torchvision_names.json");
  const auto expected = nlohmann::json::parse(file).at(GetParam()).get<std::vector<NamedShape>>();
  std::vector<NamedShape> names;
  for (const State& state : build_zoo_model(GetParam(), {}).states) {
    if (state.role == Role::parameter || state.role == Role::statistic)
      names.push_back({state.name, {state.type.shape.dims().begin(), state.type.shape.dims().end()}});
  }
  EXPECT_EQ(names, expected);
}

INSTANTIATE_TEST_SUITE_P(Zoo, TorchvisionNames, testing::Values("resnet-18", "resnet-50", "vgg-16"), [](const auto& model) {
  std::string name = model.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace

}  // namespace snug::frontend
