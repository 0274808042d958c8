#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// The identity shortcut on channels-last values: whole pixels are copied, so each is one run of memory.

namespace snug::backends::cpu {

namespace {

KernelMatch match_channels_last(const KernelQuery& query) {
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (!is_stored(type.dtype) || type.layout.kind != Layout::Kind::channels_last) {
        return Refuse{to_string(type) + " is not f32, bf16 or f16 channels last"};
      }
    }
  }
  return Accept{};
}

// The larger image (the op's input) and the smaller one (its output).
struct Images {
  std::int64_t batch, channels, height, width;
  std::int64_t out_channels, out_height, out_width;
  std::int64_t stride;

  Images(const Shape& large, const Shape& small, const Attributes& attributes)
      : batch(large[0]),
        channels(large[1]),
        height(large[2]),
        width(large[3]),
        out_channels(small[1]),
        out_height(small[2]),
        out_width(small[3]),
        stride(attributes.integer("stride")) {}

  std::int64_t large_pixel(std::int64_t n, std::int64_t h, std::int64_t w) const {
    return ((n * height + h) * width + w) * channels;
  }
  std::int64_t small_pixel(std::int64_t n, std::int64_t h, std::int64_t w) const {
    return ((n * out_height + h) * out_width + w) * out_channels;
  }
};

std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const Images images(arguments.inputs[0].type.shape, arguments.outputs[0].type.shape, arguments.attributes);
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound(
        [images, x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), threads = arguments.threads] {
          for_each_part(images.batch * images.out_height, threads, 1, [&](int, Range part) {
            for (std::int64_t row = part.begin; row < part.end; ++row) {
              const std::int64_t n = row / images.out_height;
              const std::int64_t h = row % images.out_height;
              for (std::int64_t w = 0; w < images.out_width; ++w) {
                T* pixel = y + images.small_pixel(n, h, w);
                std::copy_n(x + images.large_pixel(n, h * images.stride, w * images.stride), images.channels, pixel);
                std::fill(pixel + images.channels, pixel + images.out_channels, T{});
              }
            }
          });
        });
  });
}

std::unique_ptr<BoundKernel> bind_grad(const KernelArguments& arguments) {
  const Images images(arguments.outputs[0].type.shape, arguments.inputs[0].type.shape, arguments.attributes);
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const T* sum = accumulates(arguments.attributes) ? elements<T>(arguments.inputs[1]) : nullptr;
    return make_bound([images, sum, dy = elements<T>(arguments.inputs[0]), dx = elements<T>(arguments.outputs[0]),
                       threads = arguments.threads] {
      for_each_part(images.batch * images.height, threads, 1, [&](int, Range part) {
        for (std::int64_t row = part.begin; row < part.end; ++row) {
          const std::int64_t n = row / images.height;
          const std::int64_t h = row % images.height;
          for (std::int64_t w = 0; w < images.width; ++w) {
            const std::int64_t at = images.large_pixel(n, h, w);
            const bool was_read = h % images.stride == 0 && w % images.stride == 0;
            const T* gradient = was_read ? dy + images.small_pixel(n, h / images.stride, w / images.stride) : nullptr;
            if (sum != nullptr && was_read) {
              simd::element_loops<T>().add(sum + at, gradient, dx + at, images.channels);
            } else if (sum != nullptr) {
              if (sum != dx) std::copy_n(sum + at, images.channels, dx + at);
            } else if (was_read) {
              std::copy_n(gradient, images.channels, dx + at);
            } else {
              std::fill_n(dx + at, images.channels, T{});
            }
          }
        }
      });
    });
  });
}

}  // namespace

constinit const KernelDef simd_shortcut{
    .name = "simd_shortcut", .op = "shortcut", .match = match_channels_last, .bind = bind_forward};
constinit const KernelDef simd_shortcut_grad{
    .name = "simd_shortcut_grad", .op = "shortcut_grad", .match = match_channels_last, .bind = bind_grad};

}  // namespace snug::backends::cpu
