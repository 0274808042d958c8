#include "backends/cpu/pairs/pair_gradient.h"

#include <fmt/format.h>

namespace snug::backends::cpu {

namespace {

using ops::Conv2dGeometry;

// Paired pixels of this many bytes stay in the first-level cache while all input channels are processed.
constexpr std::int64_t kPairedBytes = std::int64_t{16} * 1024;

bool has_bf16_pairs() {
#if defined(__x86_64__)
  return is_compiled_for_bf16_pairs() && __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

std::int64_t paired_row_bytes(const Conv2dGeometry& g) {
  return (g.out_width + 1) / 2 * kGradientRows * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

}  // namespace

PairCut::PairCut(const Conv2dGeometry& geometry, int threads) : g(geometry), taps(window()) {
  // Larger items pair dy less often; smaller ones keep more threads busy.
  for (const std::int64_t fewer : {g.kernel_width, std::int64_t{1}}) {
    PairCut finer = *this;
    finer.taps = fewer;
    if (finer.busy(threads) > busy(threads)) taps = fewer;
  }
  const std::int64_t image_bytes = g.out_height * paired_row_bytes(g);
  images = std::clamp<std::int64_t>(kPairedBytes / image_bytes, 1, g.batch);
  rows = images > 1 ? g.out_height : std::clamp<std::int64_t>(kPairedBytes / paired_row_bytes(g), 1, g.out_height);
}

double PairCut::busy(int threads) const {
  const std::int64_t most = (items() + threads - 1) / threads;
  return static_cast<double>(items()) / static_cast<double>(most * threads);
}

Bytes PairCut::pairs_bytes() const { return round_up(Bytes(images * rows * paired_row_bytes(g)), kAlignment); }

Bytes PairCut::sums_bytes() const {
  return round_up(Bytes(kGradientRows * columns() * static_cast<std::int64_t>(sizeof(float))), kAlignment);
}

std::optional<std::string> pair_objection(const Type& dy, const Type& x, const Type& gradient, const Conv2dGeometry& g) {
  if (!has_bf16_pairs()) return "the processor has no AVX512_BF16";
  for (const Type* type : {&dy, &x, &gradient}) {
    if (type->dtype != DType::bf16) return to_string(*type) + " is not bf16";
  }
  for (const Type* type : {&dy, &x}) {
    if (type->layout.kind != Layout::Kind::channels_last) return to_string(*type) + " does not lie channels last";
  }
  if (g.out_channels % kGradientRows != 0 || g.in_channels % kGradientLanes != 0 || g.groups != 1)
    return fmt::format("{} to {} channels do not fill vectors", g.in_channels, g.out_channels);
  return std::nullopt;
}

void PairGradient::add_all(std::int64_t first_row, std::int64_t first_tap, std::uint32_t* pairs, float* sums) const {
  const Conv2dGeometry& g = cut_.g;
  for (std::int64_t n = 0; n < g.batch; n += cut_.images) {
    for (std::int64_t h = 0; h < g.out_height; h += cut_.rows) {
      const std::int64_t images = std::min(cut_.images, g.batch - n);
      const std::int64_t rows = std::min(cut_.rows, g.out_height - h);
      pair_pixels(dy_ + (n * g.out_height + h) * g.out_width * g.out_channels + first_row, images, rows, g.out_width,
                  g.out_channels, pairs);
      const std::uint16_t* inputs = x_ + n * g.in_height * g.in_width * g.in_channels;
      for (std::int64_t tap = 0; tap < cut_.taps; ++tap) {
        const std::int64_t window_row = (first_tap + tap) / g.kernel_width, window_column = (first_tap + tap) % g.kernel_width;
        const GradientImages of{.images = images,
                                .out_height = rows,
                                .out_width = g.out_width,
                                .in_height = g.in_height,
                                .in_width = g.in_width,
                                .in_channels = g.in_channels,
                                .stride_height = g.stride_height,
                                .stride_width = g.stride_width,
                                .top = window_row * g.dilation_height - g.padding_height + h * g.stride_height,
                                .left = window_column * g.dilation_width - g.padding_width};
        for (std::int64_t channel = 0; channel < g.in_channels;) {
          const int vectors = g.in_channels - channel >= 2 * kGradientLanes ? 2 : 1;
          add_pair_products(of, pairs, inputs + channel, vectors, sums + tap * g.in_channels + channel, cut_.columns());
          channel += vectors * kGradientLanes;
        }
      }
    }
  }
}

}  // namespace snug::backends::cpu
