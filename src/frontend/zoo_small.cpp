#include "frontend/zoo_models.h"

namespace snug::frontend {

ValueId zoo_input(GraphBuilder& builder, const ZooOptions& options, std::int64_t default_image_size) {
  const std::int64_t size = options.image_size == 0 ? default_image_size : options.image_size;
  if (!options.staged_as_bytes) return builder.features({3, size, size}, Layout::channels_last());
  return builder.images({.height = size, .width = size, .augment = options.augment, .mean = options.mean, .std = options.std});
}

Program small_cnn(const ZooOptions& options) {
  GraphBuilder b("small-cnn", options.batch, options.statistics_group);
  ValueId x = zoo_input(b, options, 32);
  std::int64_t channels = 16;
  for (int i = 1; i <= 3; ++i, channels *= 2) {
    x = b.conv2d(std::string("conv") + std::to_string(i), x, {.out_channels = channels, .padding = 1});
    x = b.relu(std::string("relu") + std::to_string(i), b.batch_norm(std::string("bn") + std::to_string(i), x));
    if (i < 3) x = b.max_pool(std::string("pool") + std::to_string(i), x);
  }
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool3", x), classes_or(options, 10)));
  return std::move(b).finish();
}

}  // namespace snug::frontend
