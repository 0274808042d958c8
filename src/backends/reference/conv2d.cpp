#include "ops/conv2d.h"

#include <algorithm>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/product_tile.h"

// All three products are computed in tiles: pixels x channels for the forward pass and the data gradient, output x input channels
// for the weight gradient. Taps in the padding are left out.

namespace snug::backends::reference {

namespace {

using ops::Conv2dGeometry;

constexpr std::int64_t kRows = ProductTile::kRows;
constexpr std::int64_t kColumns = ProductTile::kColumns;
constexpr std::int64_t kDepth = ProductTile::kDepth;

constexpr std::int64_t kNowhere = -1;

// The input row (or column) that tap `k` of output row `out` reads; kNowhere in the padding.
std::int64_t input_of(std::int64_t out, std::int64_t k, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                      std::int64_t size) {
  const std::int64_t in = out * stride - padding + k * dilation;
  return in >= 0 && in < size ? in : kNowhere;
}

// The output row (or column) whose tap `k` reads input row `in`; kNowhere when there is none.
std::int64_t output_of(std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                       std::int64_t size) {
  const std::int64_t scaled = in + padding - k * dilation;
  return scaled >= 0 && scaled % stride == 0 && scaled / stride < size ? scaled / stride : kNowhere;
}

struct Tap {
  std::int64_t h, w;
};

// What the forward pass and the data gradient share, for every group, pixel p and channel c of the result:
//   result[p, c] = sum over kh, kw and channels s of source[tap(p, kh, kw), s] * weight(group, c, s, kh, kw)   (+ bias[c])
template <typename T>
struct PixelProduct {
  View<const T> source;
  Result<T> result;
  View<const T> bias;                              // no data: none
  std::int64_t batch, height, width;               // of the result
  std::int64_t groups, channels, source_channels;  // channels of a group
  std::int64_t kernel_height, kernel_width;
};

template <typename T, typename TapOf, typename Weight>
void pixel_product_tile(const PixelProduct<T>& p, std::int64_t group, std::int64_t first_pixel, std::int64_t first_channel,
                        const TapOf& tap_of, const Weight& weight) {
  const std::int64_t rows = std::min(kRows, p.batch * p.height * p.width - first_pixel);
  const std::int64_t columns = std::min(kColumns, p.channels - first_channel);
  ProductTile tile;
  std::int64_t n[kRows], h[kRows], w[kRows];  // the pixel of each row
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t pixel = first_pixel + r;
    n[r] = pixel / (p.height * p.width);
    h[r] = pixel / p.width % p.height;
    w[r] = pixel % p.width;
  }
  for (std::int64_t kh = 0; kh < p.kernel_height; ++kh) {
    for (std::int64_t kw = 0; kw < p.kernel_width; ++kw) {
      std::int64_t active[kRows];
      const T* from[kRows];
      std::int64_t count = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Tap tap = tap_of(h[r], w[r], kh, kw);
        if (tap.h == kNowhere || tap.w == kNowhere) continue;
        active[count] = r;
        from[count++] = &p.source(n[r], group * p.source_channels, tap.h, tap.w);
      }
      if (count == 0) continue;
      for (std::int64_t s = 0; s < p.source_channels; s += kDepth) {
        const std::int64_t depth = std::min(kDepth, p.source_channels - s);
        for (std::int64_t r = 0; r < count; ++r) {
          for (std::int64_t k = 0; k < depth; ++k) tile.set_left(r, k, from[r][(s + k) * p.source.strides[1]]);
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          for (std::int64_t j = 0; j < kColumns; ++j) {
            tile.set_right(k, j, j < columns ? weight(group, first_channel + j, s + k, kh, kw) : T{0});
          }
        }
        tile.multiply(active, count, depth);
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t channel = group * p.channels + first_channel + j;
      const double sum = p.bias.data == nullptr ? tile.sum(r, j) : tile.sum(r, j) + p.bias(channel);
      p.result.set(p.result.offset(n[r], channel, h[r], w[r]), sum);
    }
  }
}

template <typename T, typename TapOf, typename Weight>
void pixel_product(const Call& call, const PixelProduct<T>& p, const TapOf& tap_of, const Weight& weight) {
  const std::int64_t pixels = p.batch * p.height * p.width;
#pragma omp parallel for collapse(3) num_threads(call.threads)
  for (std::int64_t group = 0; group < p.groups; ++group) {
    for (std::int64_t pixel = 0; pixel < pixels; pixel += kRows) {
      for (std::int64_t channel = 0; channel < p.channels; channel += kColumns) {
        pixel_product_tile(p, group, pixel, channel, tap_of, weight);
      }
    }
  }
}

template <typename T>
void run_conv2d(const Call& call) {
  const View<const T> weight = call.input<T>(1);
  const auto g = Conv2dGeometry::from(call.input_shape(0), call.input_shape(1), call.attributes);
  const PixelProduct<T> product{.source = call.input<T>(0),
                                .result = call.result<T>(),
                                .bias = call.inputs.size() == 3 ? call.input<T>(2) : View<const T>{},
                                .batch = g.batch,
                                .height = g.out_height,
                                .width = g.out_width,
                                .groups = g.groups,
                                .channels = g.out_channels / g.groups,
                                .source_channels = g.in_channels / g.groups,
                                .kernel_height = g.kernel_height,
                                .kernel_width = g.kernel_width};
  pixel_product(
      call, product,
      [&](std::int64_t oh, std::int64_t ow, std::int64_t kh, std::int64_t kw) -> Tap {
        return {input_of(oh, kh, g.stride_height, g.padding_height, g.dilation_height, g.in_height),
                input_of(ow, kw, g.stride_width, g.padding_width, g.dilation_width, g.in_width)};
      },
      [&](std::int64_t group, std::int64_t out, std::int64_t in, std::int64_t kh, std::int64_t kw) {
        return weight(group * product.channels + out, in, kh, kw);
      });
}

template <typename T>
void run_conv2d_grad_input(const Call& call) {
  const View<const T> weight = call.input<T>(1);
  const auto g = Conv2dGeometry::from(call.output_shape(0), call.input_shape(1), call.attributes);
  const PixelProduct<T> product{.source = call.input<T>(0),
                                .result = call.result<T>(),
                                .bias = {},
                                .batch = g.batch,
                                .height = g.in_height,
                                .width = g.in_width,
                                .groups = g.groups,
                                .channels = g.in_channels / g.groups,
                                .source_channels = g.out_channels / g.groups,
                                .kernel_height = g.kernel_height,
                                .kernel_width = g.kernel_width};
  pixel_product(
      call, product,
      [&](std::int64_t ih, std::int64_t iw, std::int64_t kh, std::int64_t kw) -> Tap {
        return {output_of(ih, kh, g.stride_height, g.padding_height, g.dilation_height, g.out_height),
                output_of(iw, kw, g.stride_width, g.padding_width, g.dilation_width, g.out_width)};
      },
      [&](std::int64_t group, std::int64_t in, std::int64_t out, std::int64_t kh, std::int64_t kw) {
        return weight(group * product.source_channels + out, in, kh, kw);
      });
}

// dw[co, ci, kh, kw] = sum over output pixels p of dy[p, co] * x[input of p at (kh, kw), ci], for a tile of co x ci of one group.
template <typename T>
void grad_weight_tile(const Conv2dGeometry& g, View<const T> dy, View<const T> x, const Result<T>& dw, std::int64_t group,
                      std::int64_t first_out, std::int64_t first_in, std::int64_t kh, std::int64_t kw) {
  const std::int64_t group_in = g.in_channels / g.groups;
  const std::int64_t group_out = g.out_channels / g.groups;
  const std::int64_t rows = std::min(kRows, group_out - first_out);
  const std::int64_t columns = std::min(kColumns, group_in - first_in);
  const std::int64_t out_channel = group * group_out + first_out;
  const std::int64_t in_channel = group * group_in + first_in;
  ProductTile tile;
  std::int64_t all[kRows];
  for (std::int64_t r = 0; r < rows; ++r) all[r] = r;
  std::int64_t depth = 0;  // pixels staged so far
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oh = 0; oh < g.out_height; ++oh) {
      const std::int64_t ih = input_of(oh, kh, g.stride_height, g.padding_height, g.dilation_height, g.in_height);
      if (ih == kNowhere) continue;
      for (std::int64_t ow = 0; ow < g.out_width; ++ow) {
        const std::int64_t iw = input_of(ow, kw, g.stride_width, g.padding_width, g.dilation_width, g.in_width);
        if (iw == kNowhere) continue;
        for (std::int64_t r = 0; r < rows; ++r) tile.set_left(r, depth, dy(n, out_channel + r, oh, ow));
        for (std::int64_t j = 0; j < kColumns; ++j) tile.set_right(depth, j, j < columns ? x(n, in_channel + j, ih, iw) : T{0});
        if (++depth < kDepth) continue;
        tile.multiply(all, rows, depth);
        depth = 0;
      }
    }
  }
  tile.multiply(all, rows, depth);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) dw.set(dw.offset(out_channel + r, first_in + j, kh, kw), tile.sum(r, j));
  }
}

template <typename T>
void run_conv2d_grad_weight(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const View<const T> x = call.input<T>(1);
  const Result<T> dw = call.result<T>();
  const auto g = Conv2dGeometry::from(call.input_shape(1), call.output_shape(0), call.attributes);
  const std::int64_t taps = g.kernel_height * g.kernel_width;
#pragma omp parallel for collapse(4) num_threads(call.threads)
  for (std::int64_t group = 0; group < g.groups; ++group) {
    for (std::int64_t out = 0; out < g.out_channels / g.groups; out += kRows) {
      for (std::int64_t in = 0; in < g.in_channels / g.groups; in += kColumns) {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          grad_weight_tile(g, dy, x, dw, group, out, in, tap / g.kernel_width, tap % g.kernel_width);
        }
      }
    }
  }
}

}  // namespace

constinit const KernelDef conv2d = define<[]<typename T>() { return run_conv2d<T>; }>("reference_conv2d");
constinit const KernelDef conv2d_grad_input =
    define<[]<typename T>() { return run_conv2d_grad_input<T>; }>("reference_conv2d_grad_input");
constinit const KernelDef conv2d_grad_weight =
    define<[]<typename T>() { return run_conv2d_grad_weight<T>; }>("reference_conv2d_grad_weight");

}  // namespace snug::backends::reference
