#include "ops/pool.h"

#include <algorithm>
#include <array>
#include <optional>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"
#include "backends/reference/windows.h"

// Max pooling of channels-last values, all channels of a pixel at a time. oneDNN's keeps eight bits per output and gives no
// access to them; ours keeps four, as plans assume.

namespace snug::backends::cpu {

namespace {

using ops::PoolGeometry;

constexpr std::int64_t kMostPixels = 256;  // of a window: their indices fit in eight bits

constexpr std::initializer_list<DType> kReals{DType::f32, DType::bf16, DType::f16};

std::optional<std::string> objection_to(const Type& type, std::initializer_list<DType> dtypes) {
  if (std::find(dtypes.begin(), dtypes.end(), type.dtype) == dtypes.end()) return to_string(type) + " has another element type";
  if (type.layout.kind != Layout::Kind::channels_last) return to_string(type) + " is not channels last";
  return std::nullopt;
}

KernelMatch match_window(std::int64_t window, Bytes workspace = Bytes(0)) {
  if (window > kMostPixels) return Refuse{"the window has more than 256 pixels"};
  return Accept{.workspace = workspace};
}

std::int64_t window_of(const PoolGeometry& g) { return g.kernel_height * g.kernel_width; }

// The window's pixels that are not padding, in order.
template <typename T>
std::int64_t pixels_of_window(const PoolGeometry& g, const T* image, std::int64_t out_h, std::int64_t out_w,
                              std::array<simd::Pixel<T>, kMostPixels>& pixels) {
  std::int64_t count = 0;
  for (std::int64_t kh = 0; kh < g.kernel_height; ++kh) {
    const std::int64_t h = out_h * g.stride_height - g.padding_height + kh;
    if (h < 0 || h >= g.in_height) continue;
    for (std::int64_t kw = 0; kw < g.kernel_width; ++kw) {
      const std::int64_t w = out_w * g.stride_width - g.padding_width + kw;
      if (w < 0 || w >= g.in_width) continue;
      pixels[static_cast<std::size_t>(count++)] = {image + (h * g.in_width + w) * g.channels,
                                                   static_cast<std::int32_t>(kh * g.kernel_width + kw)};
    }
  }
  return count;
}

// body(pixels, count, output pixel number) for every window of some rows of output pixels.
template <typename T, typename Body>
void for_each_window(const PoolGeometry& g, const T* x, Range rows, const Body& body) {
  std::array<simd::Pixel<T>, kMostPixels> pixels;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* image = x + row / g.out_height * g.in_height * g.in_width * g.channels;
    for (std::int64_t w = 0; w < g.out_width; ++w) {
      const std::int64_t count = pixels_of_window(g, image, row % g.out_height, w, pixels);
      body(pixels.data(), count, row * g.out_width + w);
    }
  }
}

// ---- max_pool(x) -> y

KernelMatch match_max_pool(const KernelQuery& query) {
  if (auto reason = objection_to(query.inputs[0], kReals)) return Refuse{*reason};
  return match_window(window_of(PoolGeometry::from(query.inputs[0].shape, query.attributes)));
}

std::unique_ptr<BoundKernel> bind_max_pool(const KernelArguments& arguments) {
  const auto g = PoolGeometry::from(arguments.inputs[0].type.shape, arguments.attributes);
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound(
        [g, x = elements<const T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), threads = arguments.threads] {
          for_each_part(g.batch * g.out_height, threads, 1, [&](int, Range rows) {
            for_each_window(g, x, rows, [&](const simd::Pixel<T>* pixels, std::int64_t count, std::int64_t at) {
              simd::row_loops<T>().largest_pixel(pixels, count, g.channels, y + at * g.channels, nullptr);
            });
          });
        });
  });
}

// ---- max_pool_argmax(x) -> u4 or u8

// A byte with the indices of two windows must not be shared by two threads' pixels.
std::optional<std::string> objection_to_packing(const Type& argmax) {
  if (argmax.dtype == DType::u4 && argmax.shape[1] % 2 != 0) return "an odd number of channels splits bytes between pixels";
  return std::nullopt;
}

Bytes winners_workspace(const PoolGeometry& g, int threads) { return Bytes(4 * ((g.channels + 15) / 16 * 16) * threads); }

KernelMatch match_argmax(const KernelQuery& query) {
  if (auto reason = objection_to(query.inputs[0], kReals)) return Refuse{*reason};
  if (auto reason = objection_to_packing(query.outputs[0])) return Refuse{*reason};
  const auto g = PoolGeometry::from(query.inputs[0].shape, query.attributes);
  return match_window(window_of(g), winners_workspace(g, query.threads));
}

std::unique_ptr<BoundKernel> bind_argmax(const KernelArguments& arguments) {
  const auto g = PoolGeometry::from(arguments.inputs[0].type.shape, arguments.attributes);
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([g, x = elements<const T>(arguments.inputs[0]),
                       packed = reinterpret_cast<std::uint8_t*>(arguments.outputs[0].data),
                       nibbles = arguments.outputs[0].type.dtype == DType::u4, threads = arguments.threads,
                       winners = reinterpret_cast<std::int32_t*>(arguments.workspace.data())] {
      for_each_part(g.batch * g.out_height, threads, 1, [&](int part, Range rows) {
        std::int32_t* winner = winners + winners_workspace(g, part).count() / 4;
        for_each_window(g, x, rows, [&](const simd::Pixel<T>* pixels, std::int64_t count, std::int64_t at) {
          simd::row_loops<T>().largest_pixel(pixels, count, g.channels, nullptr, winner);
          if (nibbles) {
            std::uint8_t* out = packed + at * g.channels / 2;
            for (std::int64_t c = 0; c < g.channels; c += 2)
              out[c / 2] = static_cast<std::uint8_t>(winner[c] | winner[c + 1] << 4);
          } else {
            for (std::int64_t c = 0; c < g.channels; ++c) packed[at * g.channels + c] = static_cast<std::uint8_t>(winner[c]);
          }
        });
      });
    });
  });
}

// ---- max_pool_grad_argmax(dy, argmax, sum?) -> dx

KernelMatch match_grad_argmax(const KernelQuery& query) {
  if (auto reason = objection_to(query.inputs[0], kReals)) return Refuse{*reason};
  if (auto reason = objection_to(query.inputs[1], {DType::u4, DType::u8})) return Refuse{*reason};
  if (auto reason = objection_to_packing(query.inputs[1])) return Refuse{*reason};
  if (accumulates(query.attributes))
    return Refuse{"gradients of overlapping windows cannot be rounded before they are added to a sum"};
  return Accept{};
}

struct Winners {
  const std::uint8_t* packed;
  bool nibbles;
  std::int64_t operator[](std::int64_t at) const { return nibbles ? packed[at / 2] >> (at % 2 * 4) & 15 : packed[at]; }
};

// From every window to its largest pixel. Floats add up in place.
template <typename T>
void scatter_gradients(const PoolGeometry& g, const T* dy, const Winners& winners, T* dx, Range examples) {
  const std::int64_t image = g.in_height * g.in_width * g.channels;
  const std::int64_t window = window_of(g);
  std::fill(dx + examples.begin * image, dx + examples.end * image, T{});
  for (std::int64_t pixel = examples.begin * g.out_height * g.out_width; pixel < examples.end * g.out_height * g.out_width;
       ++pixel) {
    const std::int64_t n = pixel / (g.out_height * g.out_width);
    const std::int64_t top = pixel / g.out_width % g.out_height * g.stride_height - g.padding_height;
    const std::int64_t left = pixel % g.out_width * g.stride_width - g.padding_width;
    for (std::int64_t c = 0; c < g.channels; ++c) {
      const std::int64_t at = pixel * g.channels + c;
      const std::int64_t winner = winners[at];
      const std::int64_t h = top + winner / g.kernel_width;
      const std::int64_t w = left + winner % g.kernel_width;
      // A valid index is never in padding or outside its window; an invalid one must not lead out of the image.
      if (winner >= window || h < 0 || h >= g.in_height || w < 0 || w >= g.in_width) continue;
      T& sum = dx[n * image + (h * g.in_width + w) * g.channels + c];
      sum = stored<T>(to_float(sum) + to_float(dy[at]));
    }
  }
}

// To every pixel from the windows over it: what is stored in 16 bits is rounded once.
template <typename T>
void gather_gradients(const PoolGeometry& g, const T* dy, const Winners& winners, T* dx, Range examples) {
  constexpr std::int64_t kChannels = 256;  // whose sums are on the stack
  for (std::int64_t pixel = examples.begin * g.in_height * g.in_width; pixel < examples.end * g.in_height * g.in_width; ++pixel) {
    const std::int64_t n = pixel / (g.in_height * g.in_width);
    const std::int64_t h = pixel / g.in_width % g.in_height;
    const std::int64_t w = pixel % g.in_width;
    const reference::Range rows = reference::windows_over_row(g, h);
    const reference::Range columns = reference::windows_over_column(g, w);
    for (std::int64_t c = 0; c < g.channels; c += kChannels) {
      const std::int64_t channels = std::min(kChannels, g.channels - c);
      std::array<float, kChannels> sums{};
      for (std::int64_t oh = rows.begin; oh < rows.end; ++oh) {
        for (std::int64_t ow = columns.begin; ow < columns.end; ++ow) {
          const std::int64_t number =
              (h - oh * g.stride_height + g.padding_height) * g.kernel_width + (w - ow * g.stride_width + g.padding_width);
          const std::int64_t at = ((n * g.out_height + oh) * g.out_width + ow) * g.channels + c;
          for (std::int64_t i = 0; i < channels; ++i) {
            if (winners[at + i] == number) sums[static_cast<std::size_t>(i)] += to_float(dy[at + i]);
          }
        }
      }
      for (std::int64_t i = 0; i < channels; ++i) dx[pixel * g.channels + c + i] = stored<T>(sums[static_cast<std::size_t>(i)]);
    }
  }
}

// Windows may overlap, so one thread adds up a whole image.
std::unique_ptr<BoundKernel> bind_grad_argmax(const KernelArguments& arguments) {
  const auto g = PoolGeometry::from(arguments.outputs[0].type.shape, arguments.attributes);
  const bool overlap = g.stride_height < g.kernel_height || g.stride_width < g.kernel_width;
  const Winners winners{.packed = reinterpret_cast<const std::uint8_t*>(arguments.inputs[1].data),
                        .nibbles = arguments.inputs[1].type.dtype == DType::u4};
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const bool gathers = overlap && !std::is_same_v<T, float>;
    return make_bound([g, winners, gathers, dy = elements<const T>(arguments.inputs[0]), dx = elements<T>(arguments.outputs[0]),
                       threads = arguments.threads] {
      for_each_part(g.batch, threads, 1, [&](int, Range examples) {
        if (gathers) {
          gather_gradients(g, dy, winners, dx, examples);
        } else {
          scatter_gradients(g, dy, winners, dx, examples);
        }
      });
    });
  });
}

}  // namespace

constinit const KernelDef simd_max_pool{
    .name = "simd_max_pool", .op = "max_pool", .match = match_max_pool, .bind = bind_max_pool};
constinit const KernelDef simd_max_pool_argmax{
    .name = "simd_max_pool_argmax", .op = "max_pool_argmax", .match = match_argmax, .bind = bind_argmax};
constinit const KernelDef simd_max_pool_grad_argmax{
    .name = "simd_max_pool_grad_argmax", .op = "max_pool_grad_argmax", .match = match_grad_argmax, .bind = bind_grad_argmax};

}  // namespace snug::backends::cpu
