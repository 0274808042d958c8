// What a public Model holds: how to build its program for any batch size.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include <snug/model.h>

namespace snug {

struct ModelRequest {
  std::int64_t batch = 1;             // examples of one microbatch
  std::int64_t statistics_group = 0;  // see frontend::GraphBuilder
};

struct Model::Impl {
  std::string name;
  std::function<Program(const ModelRequest&)> build;
  std::vector<std::string> frozen;

  // With the frozen parameters frozen.
  Program program(const ModelRequest& request) const;
};

}  // namespace snug
