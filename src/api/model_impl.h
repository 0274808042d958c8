// What a public Model holds: how to build its graph for any batch size.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include <snug/model.h>

namespace snug {

struct GraphRequest {
  std::int64_t batch = 1;  // examples of one microbatch
  DType dtype = DType::f32;
  std::int64_t statistics_group = 0;  // see frontend::GraphBuilder
};

struct Model::Impl {
  std::string name;
  std::function<Graph(const GraphRequest&)> build;
  std::vector<std::string> frozen;

  // With the frozen parameters frozen.
  Graph graph(const GraphRequest& request) const;
};

}  // namespace snug
