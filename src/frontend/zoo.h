// The models Snug knows by name. Parameter names of resnet-* and vgg-16 are torchvision's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace snug::frontend {

struct ZooOptions {
  std::int64_t batch = 1;       // examples of one microbatch
  std::int64_t classes = 0;     // 0: the model's own (10 for CIFAR models, 1000 for ImageNet models)
  std::int64_t image_size = 0;  // 0: the model's own (32 or 224)
  bool staged_as_bytes = true;  // false: features instead of u8 images
  bool augment = true;
  std::vector<double> mean = {}, std = {};  // per channel in units of 0..255; empty: the builder's own
  std::int64_t statistics_group = 0;        // batch-norm group size; 0: the whole microbatch
};

// "wrn-28-2", "preresnet-110", "resnet-18", "resnet-50", "vgg-16", "small-cnn"; UserError naming the known ones otherwise.
Program build_zoo_model(std::string_view name, const ZooOptions& options);

// One line each for --help: the pattern and what it is.
struct ZooEntry {
  std::string_view pattern;
  std::string_view summary;
  std::string_view example;  // a name of that pattern
};
std::span<const ZooEntry> zoo_entries();

}  // namespace snug::frontend
