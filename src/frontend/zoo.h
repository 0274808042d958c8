// The models Snug knows by name. Parameter names of resnet-* and vgg-16 are torchvision's.
#pragma once

#include <optional>
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
  std::int64_t vocabulary = 0;  // of language models; 0: the model's own
  std::int64_t length = 0;      // tokens of an example; 0: the model's context
  bool staged_as_bytes = true;  // false: features instead of u8 images
  bool augment = true;
  std::vector<double> mean = {}, std = {};  // per channel in units of 0..255; empty: the builder's own
  std::int64_t statistics_group = 0;        // batch-norm group size; 0: the whole microbatch
};

// "wrn-28-2", "preresnet-110", "resnet-18", "resnet-50", "vgg-16", "small-cnn", "gpt-small", "gpt-6-384", "gpt2",
// "llama-small", ...; UserError naming the known ones otherwise.
Program build_zoo_model(std::string_view name, const ZooOptions& options);

// Of language models; nothing for models of images. UserError for names that no model has.
struct LanguageModelSize {
  std::int64_t context = 0;         // the most tokens of an example
  std::int64_t vocabulary = 0;      // the model's own, unless it is told
  bool has_own_vocabulary = false;  // false: that of its data
};
std::optional<LanguageModelSize> language_model_size(std::string_view name);

// One line each for --help: the pattern and what it is.
struct ZooEntry {
  std::string_view pattern;
  std::string_view summary;
  std::string_view example;  // a name of that pattern
};
std::span<const ZooEntry> zoo_entries();

}  // namespace snug::frontend
