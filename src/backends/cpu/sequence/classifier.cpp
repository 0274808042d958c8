#include "backends/cpu/sequence/classifier.h"

#include "backends/cpu/instructions.h"
#include "backends/cpu/machine.h"

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kVector = 16;
// Rows of a product: with fewer, the other operand would be brought into the library's layout more often than it is worth.
constexpr std::int64_t kRowBlock = 256;
constexpr std::int64_t kColumnBlock = 128;
constexpr std::int64_t kDepth = 1024;
// A tile of the weight lies in a core's second-level cache, as floats; with few classes there are still some tiles to share.
constexpr std::int64_t kTileFloats = std::int64_t{1} << 17U;
constexpr std::int64_t kLeastTile = 64;
constexpr std::int64_t kTiles = 16;

std::int64_t round_up_to(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// Rows a multiple of a kilobyte apart would lie in the same places of a cache.
std::int64_t padded(std::int64_t floats) {
  const std::int64_t rounded = round_up_to(floats, kVector);
  return rounded % 256 == 0 ? rounded + kVector : rounded;
}

DType computed_for(DType stored) {
  if (stored != DType::bf16) return DType::f32;
  return multiplies_bf16(read_processor(), effective_instructions()) ? DType::bf16 : DType::f32;
}

}  // namespace

Classifier::Classifier(const ClassifierVariant& variant, const Type& x, const Type& weight, bool accumulates, int of_threads)
    : rows(x.shape[0]),
      classes(weight.shape[0]),
      columns(x.shape[1]),
      chunk(std::min(variant.rows, rows)),
      stride(padded(classes)),
      row_block(std::min(kRowBlock, chunk)),
      class_tile(std::min(classes, std::clamp(round_up_to(classes / kTiles, kVector), kLeastTile,
                                              std::max(kTileFloats / columns / kLeastTile * kLeastTile, kLeastTile)))),
      column_block(std::min(kColumnBlock, columns)),
      depth(std::min(kDepth, classes)),
      again_block(std::min(kRowBlock, rows)),
      tile_stride(padded(class_tile)),
      stored(x.dtype),
      computed(computed_for(stored)),
      gradient(variant.gradient),
      adds(accumulates),
      threads(of_threads) {}

ThreadProduct Classifier::logits(std::int64_t count, std::int64_t tile, std::int64_t logits_stride) const {
  return {.dtype = computed,
          .rows = count,
          .columns = tile,
          .depth = columns,
          .a_down = columns,
          .a_across = 1,
          .b_down = 1,
          .b_across = columns,
          .c_down = logits_stride,
          .adds = false};
}

ThreadProduct Classifier::input_gradient(std::int64_t count, std::int64_t tile, std::int64_t block, bool sums) const {
  return {.dtype = computed,
          .rows = count,
          .columns = block,
          .depth = tile,
          .a_down = stride * 4 / computed_bytes(),
          .a_across = 1,
          .b_down = widens() ? block : columns,
          .b_across = 1,
          .c_down = stored == DType::f32 ? columns : block,
          .adds = sums};
}

ThreadProduct Classifier::weight_gradient(std::int64_t count, std::int64_t tile, std::int64_t logits_stride, bool sums) const {
  return {.dtype = computed,
          .rows = tile,
          .columns = columns,
          .depth = count,
          .a_down = 1,
          .a_across = logits_stride * 4 / computed_bytes(),
          .b_down = columns,
          .b_across = 1,
          .c_down = columns,
          .adds = sums};
}

ThreadProducts Classifier::products() const {
  ThreadProducts products;
  for_each_kind(rows, chunk, [&](std::int64_t first, std::int64_t count) {
    for_each_kind(count, row_block, [&](std::int64_t, std::int64_t block) {
      for_each_kind(classes, class_tile, [&](std::int64_t, std::int64_t tile) { products.plan(logits(block, tile, stride)); });
      if (gradient == WeightGradient::none) return;
      for_each_kind(columns, column_block, [&](std::int64_t, std::int64_t part) {
        for_each_kind(classes, depth, [&](std::int64_t begin, std::int64_t tile) {
          products.plan(input_gradient(block, tile, part, begin != 0));
        });
      });
    });
    if (gradient != WeightGradient::summed) return;
    for_each_kind(classes, class_tile,
                  [&](std::int64_t, std::int64_t tile) { products.plan(weight_gradient(count, tile, stride, first != 0)); });
  });
  if (gradient != WeightGradient::twice) return products;
  for_each_kind(classes, class_tile, [&](std::int64_t, std::int64_t tile) {
    for_each_kind(rows, again_block, [&](std::int64_t first, std::int64_t count) {
      products.plan(logits(count, tile, tile_stride));
      products.plan(weight_gradient(count, tile, tile_stride, first != 0));
    });
  });
  return products;
}

Classifier::Scratch Classifier::cut_scratch(WorkspaceCutter& cutter) const {
  const bool twice = gradient == WeightGradient::twice;
  std::int64_t weight = 0, result = 0;
  if (widens()) weight = class_tile * columns;
  if (gradient != WeightGradient::none) {
    if (widens()) weight = std::max(weight, depth * column_block);
    if (stored != DType::f32) result = row_block * column_block;
    if (!is_direct() && !has_sum()) result = std::max(result, class_tile * columns);
  }
  return {.weight = cutter.cut(Bytes(4 * weight)),
          .x = cutter.cut(Bytes(twice ? again_block * columns * computed_bytes() : 0)),
          .logits = cutter.cut(Bytes(twice ? 4 * again_block * tile_stride : 0)),
          .result = cutter.cut(Bytes(4 * result))};
}

Bytes Classifier::scratch_bytes() const {
  WorkspaceCutter cutter;
  cut_scratch(cutter);
  return cutter.used();
}

Classifier::Scratch Classifier::scratch_of(int thread, const Pieces& pieces) const {
  WorkspaceCutter cutter(pieces.scratch + thread * scratch_bytes().count());
  return cut_scratch(cutter);
}

Classifier::Pieces Classifier::cut(WorkspaceCutter& cutter, const ThreadProducts& products) const {
  return {.losses = cutter.cut(Bytes(rows * static_cast<std::int64_t>(sizeof(RowLoss)))),
          .x = cutter.cut(Bytes(chunk * columns * computed_bytes())),
          .logits = cutter.cut(Bytes(4 * chunk * stride)),
          .sum = cutter.cut(Bytes(has_sum() ? 4 * classes * columns : 0)),
          .scratch = cutter.cut(Bytes(threads * scratch_bytes().count())),
          .scratchpads = cutter.cut(Bytes(threads * products.scratchpad().count()))};
}

}  // namespace snug::backends::cpu
