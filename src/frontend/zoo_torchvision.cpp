// torchvision's ResNet-18, ResNet-50 and VGG-16, with its parameter names, so that weights can be exchanged.

#include "base/error.h"
#include "frontend/zoo_models.h"

namespace snug::frontend {

namespace {

ValueId conv_norm(GraphBuilder& b, const std::string& prefix, const std::string& conv_name, const std::string& norm_name,
                  ValueId x, const Conv2dOptions& conv) {
  return b.batch_norm(prefix + norm_name, b.conv2d(prefix + conv_name, x, conv));
}

ValueId residual_block(GraphBuilder& b, const std::string& prefix, ValueId x, std::int64_t width, std::int64_t stride,
                       ResidualKind kind) {
  const std::int64_t out = kind == ResidualKind::basic ? width : 4 * width;
  ValueId y = x;
  if (kind == ResidualKind::basic) {
    y = b.relu(prefix + "relu1",
               conv_norm(b, prefix, "conv1", "bn1", y, {.out_channels = width, .stride = stride, .padding = 1}));
    y = conv_norm(b, prefix, "conv2", "bn2", y, {.out_channels = width, .padding = 1});
  } else {
    y = b.relu(prefix + "relu1", conv_norm(b, prefix, "conv1", "bn1", y, {.out_channels = width, .kernel = 1}));
    y = b.relu(prefix + "relu2",
               conv_norm(b, prefix, "conv2", "bn2", y, {.out_channels = width, .stride = stride, .padding = 1}));
    y = conv_norm(b, prefix, "conv3", "bn3", y, {.out_channels = out, .kernel = 1});
  }
  if (stride != 1 || b.type_of(x).shape[1] != out) {
    x = conv_norm(b, prefix, "downsample.0", "downsample.1", x, {.out_channels = out, .kernel = 1, .stride = stride});
  }
  return b.relu(prefix + "relu", b.add(prefix + "add", y, x));
}

}  // namespace

Program torchvision_resnet(const std::string& name, const std::array<int, 4>& blocks, ResidualKind kind,
                           const ZooOptions& options) {
  GraphBuilder b(name, options.batch, options.statistics_group);
  ValueId x = zoo_input(b, options, 224);
  x = b.relu("relu", conv_norm(b, "", "conv1", "bn1", x, {.out_channels = 64, .kernel = 7, .stride = 2, .padding = 3}));
  x = b.max_pool("maxpool", x, {.kernel = 3, .stride = 2, .padding = 1});
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < blocks[static_cast<std::size_t>(stage)]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = residual_block(b, fmt::format("layer{}.{}.", stage + 1, i), x, std::int64_t{64} << stage, stride, kind);
    }
  }
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("avgpool", x), classes_or(options, 1000)));
  return std::move(b).finish();
}

Program vgg_16(const ZooOptions& options) {
  GraphBuilder b("vgg-16", options.batch, options.statistics_group);
  ValueId x = zoo_input(b, options, 224);
  // torchvision numbers convolutions, ReLUs and pools alike; 0 stands for a pool.
  int number = 0;
  for (const std::int64_t channels : {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
    if (channels == 0) {
      x = b.max_pool(fmt::format("features.{}", number++), x);
      continue;
    }
    x = b.conv2d(fmt::format("features.{}", number++), x, {.out_channels = channels, .padding = 1, .bias = true});
    x = b.relu(fmt::format("features.{}", number++), x);
  }
  // At 224 pixels 7x7 are left and torchvision's adaptive pooling does nothing; other sizes go into the classifier as they are.
  x = b.flatten("flatten", x);
  x = b.dropout("classifier.2", b.relu("classifier.1", b.linear("classifier.0", x, 4096)), 0.5);
  x = b.dropout("classifier.5", b.relu("classifier.4", b.linear("classifier.3", x, 4096)), 0.5);
  b.softmax_cross_entropy(b.linear("classifier.6", x, classes_or(options, 1000)));
  return std::move(b).finish();
}

}  // namespace snug::frontend
