#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ops/random_draws.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_image_input(const Call& call) {
  const View<const std::uint8_t> images = call.input<std::uint8_t>(0);
  const View<T> y = call.output<T>(0);
  const Scalars scalars = call.scalars(1);
  const auto& mean = call.attributes.reals("mean");
  const auto& deviation = call.attributes.reals("std");
  const bool augment = call.attributes.integer("augment") != 0;
  const std::int64_t padding = call.attributes.integer("padding");
  const Shape& shape = call.output_shape(0);
  const std::int64_t height = shape[2];
  const std::int64_t width = shape[3];
  parallel_for(call, shape[0], [&](std::int64_t n) {
    const std::uint64_t example = scalars.first_example + static_cast<std::uint64_t>(n);
    const ops::ImageAugmentation draw = augment ? ops::draw_image_augmentation(scalars.seed, scalars.step, example, padding)
                                                : ops::ImageAugmentation{.flip = false, .dy = padding, .dx = padding};
    for (std::int64_t h = 0; h < height; ++h) {
      const std::int64_t from_h = h + draw.dy - padding;
      for (std::int64_t w = 0; w < width; ++w) {
        const std::int64_t from_w = (draw.flip ? width - 1 - w : w) + draw.dx - padding;
        const bool inside = from_h >= 0 && from_h < height && from_w >= 0 && from_w < width;
        for (std::int64_t c = 0; c < shape[1]; ++c) {
          const auto channel = static_cast<std::size_t>(c);
          y(n, c, h, w) = inside ? static_cast<T>((images(n, c, from_h, from_w) - mean[channel]) / deviation[channel]) : T{0};
        }
      }
    }
  });
}

constexpr Signature kSignature{.inputs = {Element::image_bytes, Element::scalars}};

}  // namespace

constinit const KernelDef image_input =
    define<[]<typename T>() { return run_image_input<T>; }, kSignature>("reference_image_input");

}  // namespace snug::backends::reference
