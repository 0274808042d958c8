// Pre-activation residual networks for small images: He et al. 2016 (preresnet-D) and Zagoruyko & Komodakis 2016 (wrn-D-K), with
// identity shortcuts: stride by subsampling, new channels zero, so that a shortcut has no parameters.

#include "base/error.h"
#include "frontend/zoo_models.h"

namespace snug::frontend {

namespace {

struct Stage {
  std::int64_t channels;  // of the block's output
  std::int64_t blocks;
};

ValueId norm_relu_conv(GraphBuilder& b, const std::string& block, int number, ValueId x, const Conv2dOptions& conv) {
  x = b.batch_norm(fmt::format("{}.bn{}", block, number), x);
  x = b.relu(fmt::format("{}.relu{}", block, number), x);
  return b.conv2d(fmt::format("{}.conv{}", block, number), x, conv);
}

ValueId residual_block(GraphBuilder& b, const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride,
                       ResidualKind kind) {
  ValueId y = x;
  if (kind == ResidualKind::basic) {
    y = norm_relu_conv(b, name, 1, y, {.out_channels = channels, .kernel = 3, .stride = stride, .padding = 1});
    y = norm_relu_conv(b, name, 2, y, {.out_channels = channels, .kernel = 3, .padding = 1});
  } else {
    y = norm_relu_conv(b, name, 1, y, {.out_channels = channels / 4, .kernel = 1, .stride = stride});
    y = norm_relu_conv(b, name, 2, y, {.out_channels = channels / 4, .kernel = 3, .padding = 1});
    y = norm_relu_conv(b, name, 3, y, {.out_channels = channels, .kernel = 1});
  }
  return b.add(name + ".add", y, b.shortcut(name + ".shortcut", x, channels, stride));
}

Program build(const std::string& name, const std::array<Stage, 3>& stages, ResidualKind kind, const ZooOptions& options) {
  GraphBuilder b(name, options.batch, options.statistics_group);
  ValueId x = zoo_input(b, options, 32);
  x = b.conv2d("stem.conv", x, {.out_channels = 16, .kernel = 3, .padding = 1});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::int64_t i = 0; i < stages[s].blocks; ++i) {
      const std::int64_t stride = s > 0 && i == 0 ? 2 : 1;
      x = residual_block(b, fmt::format("group{}.block{}", s + 1, i + 1), x, stages[s].channels, stride, kind);
    }
  }
  x = b.relu("head.relu", b.batch_norm("head.bn", x));
  b.softmax_cross_entropy(b.linear("head.fc", b.global_avg_pool("head.pool", x), classes_or(options, 10)));
  return std::move(b).finish();
}

}  // namespace

Program wide_resnet(const std::string& name, std::int64_t depth, std::int64_t width, const ZooOptions& options) {
  if (depth < 10 || (depth - 4) % 6 != 0)
    throw_user_error("'{}' has depth {}; a wide residual network's is 6n+4: 10, 16, 22, 28, ...", name, depth);
  const std::int64_t n = (depth - 4) / 6;
  return build(name, {{{16 * width, n}, {32 * width, n}, {64 * width, n}}}, ResidualKind::basic, options);
}

Program preactivation_resnet(const std::string& name, std::int64_t depth, const ZooOptions& options) {
  const bool basic_fits = depth >= 8 && (depth - 2) % 6 == 0;
  const bool bottleneck_fits = depth >= 11 && (depth - 2) % 9 == 0;
  // Many depths fit both, and all but one are basic: 110, 218, 434, 866, 1730 then form one series. In the literature 164 is the
  // bottleneck network of He et al. (1001, their other one, is not 6n+2).
  const bool bottleneck = bottleneck_fits && (!basic_fits || depth == 164);
  if (bottleneck) {
    const std::int64_t n = (depth - 2) / 9;
    return build(name, {{{64, n}, {128, n}, {256, n}}}, ResidualKind::bottleneck, options);
  }
  if (basic_fits) {
    const std::int64_t n = (depth - 2) / 6;
    return build(name, {{{16, n}, {32, n}, {64, n}}}, ResidualKind::basic, options);
  }
  throw_user_error("'{}' has depth {}; use 6n+2 (basic blocks: 20, 56, 110, ...) or 9n+2 (bottlenecks: 29, 164, 1001, ...)", name,
                   depth);
}

}  // namespace snug::frontend
