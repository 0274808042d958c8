// Tiles of an image for direct sparse convolution: some rows of the output and the inputs that they read, each channel
// separately, so that one nonzero weight is one multiply-add over a contiguous range.
//
// A channel of the input is cut into planes, one for each remainder of row and column by the stride, in coordinates that begin
// with the padding. All planes and the output have the same pitch, so output element j (row * pitch + column) reads element
// offset(tap) + j of a channel. Columns from the output's width up to the pitch are not part of the output; what is computed
// there is discarded.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/sparse/simd.h"
#include "ops/conv2d.h"

namespace snug::backends::cpu {

struct SparseTiles {
  ops::Conv2dGeometry g;
  std::int64_t rows;        // of the output in a tile; the last tile of an image may have fewer
  std::int64_t pitch;       // of planes and output
  std::int64_t halo;        // rows of a plane beyond the tile's
  std::int64_t plane;       // elements of a plane
  std::int64_t channel;     // elements of all planes of a channel
  std::int64_t out_length;  // elements of one output channel, rounded up

  // As many rows as make about `length` elements.
  SparseTiles(const ops::Conv2dGeometry& geometry, std::int64_t length)
      : g(geometry),
        pitch(g.out_width + (g.kernel_width - 1) * g.dilation_width / g.stride_width),
        halo((g.kernel_height - 1) * g.dilation_height / g.stride_height) {
    const std::int64_t fitting = std::max<std::int64_t>(1, length / pitch);
    const std::int64_t tiles = (g.out_height + fitting - 1) / fitting;
    rows = (g.out_height + tiles - 1) / tiles;
    plane = (rows + halo) * pitch;
    channel = g.stride_height * g.stride_width * plane;
    out_length = (rows * pitch + simd::kMostTileLanes - 1) / simd::kMostTileLanes * simd::kMostTileLanes;
  }

  std::int64_t tiles() const { return (g.out_height + rows - 1) / rows; }
  std::int64_t rows_of(std::int64_t first_row) const { return std::min(rows, g.out_height - first_row); }
  std::int64_t length_of(std::int64_t first_row) const { return rows_of(first_row) * pitch; }
  // Including what loops may read after the last channel.
  std::int64_t input_elements() const { return g.in_channels * channel + simd::kMostTileLanes + pitch; }

  // Of a column of the store: its channel and its tap.
  std::int64_t offset(std::int64_t column) const {
    const std::int64_t tap = column / g.in_channels;
    const std::int64_t h = tap / g.kernel_width * g.dilation_height;
    const std::int64_t w = tap % g.kernel_width * g.dilation_width;
    return column % g.in_channels * channel + (h % g.stride_height * g.stride_width + w % g.stride_width) * plane +
           h / g.stride_height * pitch + w / g.stride_width;
  }

  // body(position in a channel, input row, input column) for every element of the planes that lies within rows [begin, end) of
  // them, for the tile whose output begins with `first_row`; input_row is -1 outside of the image.
  template <typename Body>
  void for_pixels(std::int64_t first_row, std::int64_t begin, std::int64_t end, const Body& body) const {
    for (std::int64_t a = 0; a < g.stride_height; ++a) {
      for (std::int64_t b = 0; b < g.stride_width; ++b) {
        const std::int64_t base = (a * g.stride_width + b) * plane;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t h = (first_row + i) * g.stride_height + a - g.padding_height;
          const bool row_inside = h >= 0 && h < g.in_height;
          for (std::int64_t c = 0; c < pitch; ++c) {
            const std::int64_t w = c * g.stride_width + b - g.padding_width;
            const bool inside = row_inside && w >= 0 && w < g.in_width;
            body(base + i * pitch + c, inside ? h : -1, w);
          }
        }
      }
    }
  }
};

}  // namespace snug::backends::cpu
