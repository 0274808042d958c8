#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/sparse/tiles.h"
#include "backends/cpu/storage.h"
#include "backends/sparse_store.h"

// Sparse convolutions straight from the packed rows: no dense weight, and work in proportion to the nonzeros. The workspace holds
// one tile of an image per thread (tiles.h), channel after channel, and one unpacked row of the store.

namespace snug::backends::cpu {

namespace {

using ops::Conv2dGeometry;
using ops::SparseSlot;

constexpr std::string_view kDirect = "direct";
// Elements of an output channel in a tile: several registers full, and tiles that stay in the second-level cache.
constexpr std::int64_t kTileLength = 288;
// Output channels whose weight gradients are summed up at a time.
constexpr std::int64_t kRowsAtATime = 16;

Conv2dGeometry geometry_of(const Shape& input, const Attributes& attributes) {
  return Conv2dGeometry::from(input, SparseSlot::from(attributes).shape, attributes);
}

// Why direct kernels cannot take an operand; nothing when they can.
std::optional<std::string> objection_to(std::initializer_list<const Type*> images) {
  for (const Type* type : images) {
    if (!is_stored(type->dtype)) return to_string(*type) + " is not f32, bf16 or f16";
    if (type->layout.kind != Layout::Kind::channels_last) return to_string(*type) + " does not lie channels last";
  }
  return std::nullopt;
}

Bytes floats_size(std::int64_t count) { return Bytes(count * static_cast<std::int64_t>(sizeof(float))); }

// One row of the store, unpacked into a thread's part of the workspace.
template <typename T>
class UnpackedRow {
 public:
  UnpackedRow(std::byte* at, std::int64_t columns)
      : weights_(reinterpret_cast<float*>(at)), offsets_(reinterpret_cast<std::int32_t*>(weights_ + columns)) {}
  static Bytes size(std::int64_t columns) { return floats_size(2 * columns); }

  simd::TileRow unpack(const SparseRows<const T>& rows, std::int64_t row, const std::int32_t* offset_of_column) const {
    const std::int64_t begin = rows.begin(row);
    const std::int64_t count = rows.end(row) - begin;
    for (std::int64_t i = 0; i < count; ++i) offsets_[i] = offset_of_column[rows.column(begin + i)];
    if (rows.values != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) weights_[i] = to_float(rows.values[begin + i]);
    }
    return {.weights = weights_, .at = offsets_, .count = count};
  }

 private:
  float* weights_;
  std::int32_t* offsets_;
};

// The pieces of a workspace, each `copies` times.
struct DirectPieces {
  std::byte *offsets, *tiles, *outputs, *rows, *sums;
  std::int64_t tile_bytes, output_bytes, row_bytes;

  DirectPieces(WorkspaceCutter& cutter, const SparseTiles& tiles_of, const SparseSlot& slot, std::int64_t outputs_each,
               int tile_copies, int copies, std::int64_t sums_count) {
    const auto each = [](Bytes size) { return round_up(size, kAlignment).count(); };
    tile_bytes = each(floats_size(tiles_of.input_elements()));
    output_bytes = each(floats_size(outputs_each * tiles_of.out_length));
    row_bytes = each(UnpackedRow<float>::size(slot.columns()));
    offsets = cutter.cut(floats_size(slot.columns()));
    tiles = cutter.cut(Bytes(tile_bytes * tile_copies));
    outputs = cutter.cut(Bytes(output_bytes * tile_copies));
    rows = cutter.cut(Bytes(row_bytes * copies));
    sums = cutter.cut(floats_size(sums_count));
  }
  float* tile(int thread) const { return reinterpret_cast<float*>(tiles + thread * tile_bytes); }
  float* output(int thread) const { return reinterpret_cast<float*>(outputs + thread * output_bytes); }
  std::int32_t* offset_table() const { return reinterpret_cast<std::int32_t*>(offsets); }
};

// What the three products share.
template <typename T>
struct Direct {
  SparseTiles tiles;
  SparseSlot slot;
  SparseRows<const T> rows;
  DirectPieces pieces;
  int threads;

  void make_offsets() const {
    for (std::int64_t column = 0; column < slot.columns(); ++column)
      pieces.offset_table()[column] = static_cast<std::int32_t>(tiles.offset(column));
  }
  UnpackedRow<T> row_of(int thread) const { return {pieces.rows + thread * pieces.row_bytes, slot.columns()}; }

  // The input of a tile, channels [begin, end), with zeros around it.
  void fill_tile(const T* image, std::int64_t first_row, float* tile, Range channels) const {
    const Conv2dGeometry& g = tiles.g;
    tiles.for_pixels(first_row, 0, tiles.rows + tiles.halo, [&](std::int64_t position, std::int64_t h, std::int64_t w) {
      float* to = tile + channels.begin * tiles.channel + position;
      if (h < 0) {
        for (std::int64_t c = 0; c < channels.size(); ++c) to[c * tiles.channel] = 0;
        return;
      }
      const T* from = image + (h * g.in_width + w) * g.in_channels + channels.begin;
      for (std::int64_t c = 0; c < channels.size(); ++c) to[c * tiles.channel] = to_float(from[c]);
    });
    if (channels.end == g.in_channels) std::fill(tile + g.in_channels * tiles.channel, tile + tiles.input_elements(), 0.0F);
  }

  // One channel of an output's gradient, with zeros after the image's columns and rows.
  void fill_gradient(const T* image, std::int64_t first_row, std::int64_t o, float* out) const {
    const Conv2dGeometry& g = tiles.g;
    std::fill_n(out, tiles.out_length, 0.0F);
    for (std::int64_t r = 0; r < tiles.rows_of(first_row); ++r) {
      const T* from = image + (first_row + r) * g.out_width * g.out_channels + o;
      for (std::int64_t w = 0; w < g.out_width; ++w) out[r * tiles.pitch + w] = to_float(from[w * g.out_channels]);
    }
  }
};

template <typename T>
Direct<T> direct_of(const KernelArguments& arguments, const SparseTiles& tiles, const DirectPieces& pieces,
                    const std::byte* values, std::size_t columns) {
  const SparseSlot slot = SparseSlot::from(arguments.attributes);
  return {.tiles = tiles,
          .slot = slot,
          .rows = {.values = reinterpret_cast<const T*>(values),
                   .columns = reinterpret_cast<const std::uint8_t*>(arguments.inputs[columns].data),
                   .rows = reinterpret_cast<const std::int32_t*>(arguments.inputs[columns + 1].data) + slot.first_row,
                   .bits = slot.bits},
          .pieces = pieces,
          .threads = arguments.threads};
}

// ---- forward

DirectPieces cut_forward(WorkspaceCutter& cutter, const SparseTiles& tiles, const SparseSlot& slot, int threads) {
  return {cutter, tiles, slot, 1, threads, threads, 0};
}

KernelMatch accept_direct(const WorkspaceCutter& cutter) {
  return Accept{.workspace = cutter.used(), .numerics = kDirect, .slowdown = 1.5};
}

KernelMatch match_forward(const KernelQuery& query) {
  if (auto reason = objection_to({&query.inputs[0], &query.outputs[0]})) return Refuse{*reason};
  WorkspaceCutter cutter;
  cut_forward(cutter, {geometry_of(query.inputs[0].shape, query.attributes), kTileLength}, SparseSlot::from(query.attributes),
              query.threads);
  return accept_direct(cutter);
}

template <typename T>
std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const SparseTiles layout(geometry_of(arguments.inputs[0].type.shape, arguments.attributes), kTileLength);
  WorkspaceCutter cutter(arguments.workspace.data());
  const DirectPieces pieces = cut_forward(cutter, layout, SparseSlot::from(arguments.attributes), arguments.threads);
  const auto* bias = arguments.inputs.size() == 5 ? reinterpret_cast<const T*>(arguments.inputs[4].data) : nullptr;
  return make_bound([direct = direct_of<T>(arguments, layout, pieces, arguments.inputs[1].data, 2), bias,
                     x = reinterpret_cast<const T*>(arguments.inputs[0].data),
                     y = reinterpret_cast<T*>(arguments.outputs[0].data)] {
    const SparseTiles& tiles = direct.tiles;
    const Conv2dGeometry& g = tiles.g;
    direct.make_offsets();
    for_each_part(g.batch * tiles.tiles(), direct.threads, 1, [&](int thread, Range part) {
      float* tile = direct.pieces.tile(thread);
      float* out = direct.pieces.output(thread);
      const UnpackedRow<T> unpacked = direct.row_of(thread);
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const std::int64_t n = item / tiles.tiles();
        const std::int64_t first_row = item % tiles.tiles() * tiles.rows;
        direct.fill_tile(x + n * g.in_height * g.in_width * g.in_channels, first_row, tile, {0, g.in_channels});
        T* image = y + (n * g.out_height + first_row) * g.out_width * g.out_channels;
        for (std::int64_t o = 0; o < g.out_channels; ++o) {
          const simd::TileRow row = unpacked.unpack(direct.rows, o, direct.pieces.offset_table());
          simd::tile_product(row, tile, bias == nullptr ? 0.0F : to_float(bias[o]), out, tiles.length_of(first_row));
          for (std::int64_t r = 0; r < tiles.rows_of(first_row); ++r) {
            T* to = image + r * g.out_width * g.out_channels + o;
            for (std::int64_t w = 0; w < g.out_width; ++w) to[w * g.out_channels] = stored_float<T>(out[r * tiles.pitch + w]);
          }
        }
      }
    });
  });
}

// ---- data gradient: tiles of an image one after the other, since neighbors add to the same rows of dx

KernelMatch match_grad_input(const KernelQuery& query) {
  if (auto reason = objection_to({&query.inputs[0], &query.outputs[0]})) return Refuse{*reason};
  WorkspaceCutter cutter;
  cut_forward(cutter, {geometry_of(query.outputs[0].shape, query.attributes), kTileLength}, SparseSlot::from(query.attributes),
              query.threads);
  return accept_direct(cutter);
}

// The complete rows of a tile are written to dx; the rest moves up to where the image's next tile continues.
template <typename T>
void write_back(const SparseTiles& tiles, std::int64_t first_row, float* tile, T* image) {
  const Conv2dGeometry& g = tiles.g;
  const bool last = first_row + tiles.rows >= g.out_height;
  tiles.for_pixels(first_row, 0, last ? tiles.rows + tiles.halo : tiles.rows,
                   [&](std::int64_t position, std::int64_t h, std::int64_t w) {
                     if (h < 0) return;
                     T* to = image + (h * g.in_width + w) * g.in_channels;
                     for (std::int64_t c = 0; c < g.in_channels; ++c) to[c] = stored_float<T>(tile[c * tiles.channel + position]);
                   });
  if (last) return;
  const std::int64_t planes = g.in_channels * g.stride_height * g.stride_width;
  for (std::int64_t p = 0; p < planes; ++p) {
    float* plane = tile + p * tiles.plane;
    std::copy(plane + tiles.rows * tiles.pitch, plane + tiles.plane, plane);
    std::fill(plane + tiles.halo * tiles.pitch, plane + tiles.plane, 0.0F);
  }
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const SparseTiles layout(geometry_of(arguments.outputs[0].type.shape, arguments.attributes), kTileLength);
  WorkspaceCutter cutter(arguments.workspace.data());
  const DirectPieces pieces = cut_forward(cutter, layout, SparseSlot::from(arguments.attributes), arguments.threads);
  return make_bound([direct = direct_of<T>(arguments, layout, pieces, arguments.inputs[1].data, 2),
                     dy = reinterpret_cast<const T*>(arguments.inputs[0].data),
                     dx = reinterpret_cast<T*>(arguments.outputs[0].data)] {
    const SparseTiles& tiles = direct.tiles;
    const Conv2dGeometry& g = tiles.g;
    direct.make_offsets();
    for_each_part(g.batch, direct.threads, 1, [&](int thread, Range part) {
      float* tile = direct.pieces.tile(thread);
      float* gradient = direct.pieces.output(thread);
      const UnpackedRow<T> unpacked = direct.row_of(thread);
      for (std::int64_t n = part.begin; n < part.end; ++n) {
        T* image = dx + n * g.in_height * g.in_width * g.in_channels;
        // Rows and columns that no window reaches have no gradient.
        std::fill_n(image, g.in_height * g.in_width * g.in_channels, T{});
        std::fill_n(tile, tiles.input_elements(), 0.0F);
        for (std::int64_t first_row = 0; first_row < g.out_height; first_row += tiles.rows) {
          for (std::int64_t o = 0; o < g.out_channels; ++o) {
            direct.fill_gradient(dy + n * g.out_height * g.out_width * g.out_channels, first_row, o, gradient);
            simd::tile_scatter(unpacked.unpack(direct.rows, o, direct.pieces.offset_table()), gradient, tile,
                               tiles.length_of(first_row));
          }
          write_back(tiles, first_row, tile, image);
        }
      }
    });
  });
}

// ---- weight gradient: some output channels at a time, all threads on one tile

DirectPieces cut_grad_weight(WorkspaceCutter& cutter, const SparseTiles& tiles, const SparseSlot& slot, int threads) {
  const std::int64_t rows = std::min(kRowsAtATime, slot.rows());
  return {cutter, tiles, slot, rows, 1, threads, rows * slot.columns()};
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  if (auto reason = objection_to({&query.inputs[0], &query.inputs[1]})) return Refuse{*reason};
  WorkspaceCutter cutter;
  cut_grad_weight(cutter, {geometry_of(query.inputs[1].shape, query.attributes), kTileLength}, SparseSlot::from(query.attributes),
                  query.threads);
  return accept_direct(cutter);
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const SparseTiles layout(geometry_of(arguments.inputs[1].type.shape, arguments.attributes), kTileLength);
  WorkspaceCutter cutter(arguments.workspace.data());
  const DirectPieces pieces = cut_grad_weight(cutter, layout, SparseSlot::from(arguments.attributes), arguments.threads);
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add_action(make_bound(
      [direct = direct_of<T>(arguments, layout, pieces, nullptr, 2), dy = reinterpret_cast<const T*>(arguments.inputs[0].data),
       x = reinterpret_cast<const T*>(arguments.inputs[1].data), out = reinterpret_cast<T*>(arguments.outputs[0].data)] {
        const SparseTiles& tiles = direct.tiles;
        const Conv2dGeometry& g = tiles.g;
        const std::int64_t columns = direct.slot.columns();
        auto* sums = reinterpret_cast<float*>(direct.pieces.sums);
        direct.make_offsets();
        for (std::int64_t first = 0; first < g.out_channels; first += kRowsAtATime) {
          const std::int64_t rows = std::min(kRowsAtATime, g.out_channels - first);
          std::fill_n(sums, rows * columns, 0.0F);
          for (std::int64_t item = 0; item < g.batch * tiles.tiles(); ++item) {
            const std::int64_t n = item / tiles.tiles();
            const std::int64_t first_row = item % tiles.tiles() * tiles.rows;
            float* tile = direct.pieces.tile(0);
            for_each_part(g.in_channels, direct.threads, 16, [&](int, Range channels) {
              direct.fill_tile(x + n * g.in_height * g.in_width * g.in_channels, first_row, tile, channels);
            });
            for_each_part(rows, direct.threads, 1, [&](int thread, Range part) {
              for (std::int64_t r = part.begin; r < part.end; ++r) {
                float* gradient = direct.pieces.output(0) + r * tiles.out_length;
                direct.fill_gradient(dy + n * g.out_height * g.out_width * g.out_channels, first_row, first + r, gradient);
                const simd::TileRow row = direct.row_of(thread).unpack(direct.rows, first + r, direct.pieces.offset_table());
                simd::tile_dots(row, gradient, tile, sums + r * columns, tiles.length_of(first_row));
              }
            });
          }
          for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t begin = direct.rows.begin(first + r);
            for (std::int64_t k = begin; k < direct.rows.end(first + r); ++k)
              out[k] = stored_float<T>(to_float(out[k]) + to_float(stored_float<T>(sums[r * columns + k - begin])));
          }
        }
      }));
  return chain;
}

using Bind = std::unique_ptr<BoundKernel> (*)(const KernelArguments&);

template <Bind F32, Bind Bf16, Bind F16>
std::unique_ptr<BoundKernel> bind_stored(const KernelArguments& arguments) {
  const DType dtype = arguments.inputs[0].type.dtype;
  return dtype == DType::f32 ? F32(arguments) : dtype == DType::bf16 ? Bf16(arguments) : F16(arguments);
}

}  // namespace

constinit const KernelDef direct_sparse_conv2d{
    .name = "direct_sparse_conv2d",
    .op = "sparse_conv2d",
    .match = match_forward,
    .bind = bind_stored<bind_forward<float>, bind_forward<Bfloat16>, bind_forward<Half>>};
constinit const KernelDef direct_sparse_conv2d_grad_input{
    .name = "direct_sparse_conv2d_grad_input",
    .op = "sparse_conv2d_grad_input",
    .match = match_grad_input,
    .bind = bind_stored<bind_grad_input<float>, bind_grad_input<Bfloat16>, bind_grad_input<Half>>};
constinit const KernelDef direct_sparse_conv2d_grad_weight{
    .name = "direct_sparse_conv2d_grad_weight",
    .op = "sparse_conv2d_grad_weight",
    .match = match_grad_weight,
    .bind = bind_stored<bind_grad_weight<float>, bind_grad_weight<Bfloat16>, bind_grad_weight<Half>>};

}  // namespace snug::backends::cpu
