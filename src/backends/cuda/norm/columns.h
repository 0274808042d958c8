// How the channels-last kernels divide a matrix of rows (pixels) and columns (channels) into blocks. A thread keeps the same V
// neighboring channels for all its rows, so what belongs to a channel is loaded once.
//
// The division depends only on the shape: not on the device, so a plan is the same everywhere, and not on how many examples are
// valid, so the order of a sum is always the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace snug::backends::cuda {

// Rows of a group of examples are normalized together; one group of all examples where there are no groups.
struct RowShape {
  std::uint32_t batch, pixels, channels;
  std::uint32_t group_size, groups;    // entries of the leading dimension in a group; the last may have fewer
  std::uint32_t rows_per_example = 1;  // entries of the leading dimension that an example has

  std::uint32_t rows_of_full_group() const { return std::min(group_size, batch) * pixels; }
};

struct ColumnTiling {
  std::uint32_t vector;         // channels of a thread
  std::uint32_t vectors;        // of a row
  std::uint32_t width, height;  // threads of a block: vectors across, rows down; both powers of two, 256 together
  std::uint32_t tiles;          // blocks across

  static ColumnTiling of(std::uint32_t channels, std::size_t element_bytes) {
    const auto most = static_cast<std::uint32_t>(16 / element_bytes);
    ColumnTiling t{};
    t.vector = channels % most == 0 ? most : 1;
    t.vectors = channels / t.vector;
    t.width = 1;
    while (t.width < 32 && t.width < t.vectors) t.width *= 2;
    t.height = 256 / t.width;
    t.tiles = (t.vectors + t.width - 1) / t.width;
    return t;
  }
};

// A sum down the columns in two steps: every chunk of a group's rows by one block, then all chunks of a channel by one thread
// each.
struct ColumnSums {
  ColumnTiling tiling;
  std::uint32_t chunks, rows_per_chunk;

  static constexpr std::uint32_t kLeastRowsPerThread = 8;
  static constexpr std::uint32_t kMostBlocks = 512;

  static ColumnSums of(const RowShape& shape, std::size_t element_bytes) {
    ColumnSums s{};
    s.tiling = ColumnTiling::of(shape.channels, element_bytes);
    const std::uint32_t rows = shape.rows_of_full_group();
    const std::uint32_t wanted = (rows + s.tiling.height * kLeastRowsPerThread - 1) / (s.tiling.height * kLeastRowsPerThread);
    const std::uint32_t allowed = std::max<std::uint32_t>(1, kMostBlocks / (s.tiling.tiles * shape.groups));
    s.chunks = std::clamp<std::uint32_t>(wanted, 1, allowed);
    s.rows_per_chunk = (rows + s.chunks - 1) / s.chunks;
    return s;
  }

  // Two sums for every chunk, channel and group, in float.
  std::int64_t workspace_bytes(const RowShape& shape) const {
    return std::int64_t{2} * chunks * shape.groups * shape.channels * static_cast<std::int64_t>(sizeof(float));
  }
};

// Most blocks in y and z of a launch, which count groups.
inline constexpr std::int64_t kMaxGroups = 65535;

}  // namespace snug::backends::cuda
