// Every family of the zoo, at sizes that plan in milliseconds.
#pragma once

#include <string>
#include <vector>

#include "frontend/zoo.h"

namespace snug::testing {

struct ZooModel {
  std::string name;
  std::int64_t image_size = 0;  // 0: the model's own
};

inline const std::vector<ZooModel> kZooModels{{"small-cnn"},     {"wrn-10-1"},      {"wrn-28-2"},
                                              {"preresnet-20"},  {"preresnet-29"},  {"preresnet-110"},
                                              {"resnet-18", 64}, {"resnet-50", 64}, {"vgg-16", 64}};

inline Program build(const ZooModel& model, std::int64_t batch, frontend::ZooOptions options = {}) {
  options.batch = batch;
  options.image_size = model.image_size;
  return frontend::build_zoo_model(model.name, options);
}

}  // namespace snug::testing
