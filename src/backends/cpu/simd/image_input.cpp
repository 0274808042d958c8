#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/storage.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"

// Normalized images from bytes. A channel has only 256 results, so they are computed once per run, into the workspace, with the
// reference's arithmetic: looking them up gives its bits, and an image costs no division.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kByteValues = 256;

KernelMatch match_image_input(const KernelQuery& query) {
  for (const Type& type : {query.inputs[0], query.outputs[0]}) {
    if (type.layout.kind != Layout::Kind::channels_last) return Refuse{to_string(type) + " is not channels last"};
  }
  const DType dtype = query.outputs[0].dtype;
  if (!is_stored(dtype)) return Refuse{to_string(query.outputs[0]) + " is not f32, bf16 or f16"};
  return Accept{.workspace = Bytes(bits_per_element(dtype) / 8 * kByteValues * query.inputs[0].shape[1])};
}

template <typename T>
struct Images {
  std::int64_t count, channels, height, width;
  std::int64_t padding;
  bool augment;
  const std::uint8_t* bytes;
  T* normalized;
  T* table;  // kByteValues for each channel

  ops::ImageAugmentation draw(const Scalars& scalars, std::int64_t n) const {
    if (!augment) return {.flip = false, .dy = padding, .dx = padding};
    return ops::draw_image_augmentation(scalars.seed, scalars.step, scalars.first_example + static_cast<std::uint64_t>(n),
                                        padding);
  }

  void run(std::int64_t n, const ops::ImageAugmentation& draw) const {
    const std::int64_t size = height * width * channels;
    for (std::int64_t h = 0; h < height; ++h) {
      const std::int64_t from_h = h + draw.dy - padding;
      const bool row_inside = from_h >= 0 && from_h < height;
      const std::uint8_t* from_row = bytes + n * size + (row_inside ? from_h : 0) * width * channels;
      T* out = normalized + n * size + h * width * channels;
      for (std::int64_t w = 0; w < width; ++w, out += channels) {
        const std::int64_t from_w = (draw.flip ? width - 1 - w : w) + draw.dx - padding;
        const bool inside = row_inside && from_w >= 0 && from_w < width;
        for (std::int64_t c = 0; c < channels; ++c) {
          out[c] = inside ? table[c * kByteValues + from_row[from_w * channels + c]] : T{};
        }
      }
    }
  }
};

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  const Shape& shape = arguments.inputs[0].type.shape;
  const Images<T> images{.count = shape[0],
                         .channels = shape[1],
                         .height = shape[2],
                         .width = shape[3],
                         .padding = arguments.attributes.integer("padding"),
                         .augment = arguments.attributes.integer("augment") != 0,
                         .bytes = reinterpret_cast<const std::uint8_t*>(arguments.inputs[0].data),
                         .normalized = elements<T>(arguments.outputs[0]),
                         .table = reinterpret_cast<T*>(arguments.workspace.data())};
  return make_bound([images, mean = arguments.attributes.reals("mean"), deviation = arguments.attributes.reals("std"),
                     scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data), threads = arguments.threads] {
    for (std::size_t c = 0; c < mean.size(); ++c) {
      T* of_channel = images.table + static_cast<std::int64_t>(c) * kByteValues;
      for (int byte = 0; byte < kByteValues; ++byte) of_channel[byte] = stored<T>((byte - mean[c]) / deviation[c]);
    }
    for_each_part(images.count, threads, 1, [&](int, Range part) {
      for (std::int64_t n = part.begin; n < part.end; ++n) images.run(n, images.draw(*scalars, n));
    });
  });
}

std::unique_ptr<BoundKernel> bind_image_input(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef table_image_input{
    .name = "table_image_input", .op = "image_input", .match = match_image_input, .bind = bind_image_input};

}  // namespace snug::backends::cpu
