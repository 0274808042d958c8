// The builders of the zoo's models, one file per family.
#pragma once

#include <array>
#include <string>

#include "frontend/graph_builder.h"
#include "frontend/zoo.h"

namespace snug::frontend {

enum class ResidualKind { basic, bottleneck };

Program wide_resnet(const std::string& name, std::int64_t depth, std::int64_t width, const ZooOptions& options);
Program preactivation_resnet(const std::string& name, std::int64_t depth, const ZooOptions& options);
Program torchvision_resnet(const std::string& name, const std::array<int, 4>& blocks, ResidualKind kind,
                           const ZooOptions& options);
Program vgg_16(const ZooOptions& options);
Program small_cnn(const ZooOptions& options);

// The staged input at the given or the model's own image size.
ValueId zoo_input(GraphBuilder& builder, const ZooOptions& options, std::int64_t default_image_size);

inline std::int64_t classes_or(const ZooOptions& options, std::int64_t fallback) {
  return options.classes == 0 ? fallback : options.classes;
}

}  // namespace snug::frontend
