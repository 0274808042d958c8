// How the CPU divides linear_cross_entropy and its step into pieces of work for single threads; by types and the kernel alone, so
// that the bits are the same on any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "backends/cpu/sequence/products.h"
#include "ir/kernel.h"

namespace snug::backends::cpu {

// How the weight's gradient is made where not all rows have logits at the same time:
//   summed   over the chunks of rows, in float; in the gradient itself where it is f32 and added to nothing, else in a workspace
//            as large as the weight
//   twice    after all losses are known, the logits of a tile of classes are made again, for all rows: one more product, but no
//            workspace beside the tiles
enum class WeightGradient : std::uint8_t { none, summed, twice };

struct ClassifierVariant {
  std::string_view name, op, numerics;
  WeightGradient gradient;
  std::int64_t rows;  // whose logits exist at a time
  bool is_first, is_last;
  double slowdown;
};

// What a row adds to the metrics, and what its gradient needs.
struct RowLoss {
  double loss, log_sum_exp, weight;  // weight: 0 where the row does not count
  double score;
};

class Classifier {
 public:
  Classifier(const ClassifierVariant& variant, const Type& x, const Type& weight, bool accumulates, int threads);

  std::int64_t rows, classes, columns;
  std::int64_t chunk, stride;          // `stride` floats from a row of logits to the next
  std::int64_t row_block, class_tile;  // of products
  std::int64_t column_block, depth;    // of the product that makes the input's gradient: columns, and classes at a time
  std::int64_t again_block;            // rows of a tile's logits that are made again
  std::int64_t tile_stride;            // floats from one of these rows to the next
  DType stored, computed;              // computed: what products read, f32 or bf16
  WeightGradient gradient;
  bool adds;  // the weight's gradient to a sum
  int threads;

  std::int64_t computed_bytes() const { return bits_per_element(computed) / 8; }
  bool widens() const { return stored != computed; }
  bool is_single() const { return chunk == rows; }
  // Whether the weight's gradient is summed where it is stored.
  bool is_direct() const { return stored == DType::f32 && !adds; }
  bool has_sum() const { return gradient == WeightGradient::summed && !is_single() && !is_direct(); }

  // body(first, count) for every stretch of `size` of these.
  template <typename Body>
  static void for_each_stretch(std::int64_t all, std::int64_t size, const Body& body) {
    for (std::int64_t first = 0; first < all; first += size) body(first, std::min(size, all - first));
  }

  // The same for one of each kind: the first, the second and the last stretch.
  template <typename Body>
  static void for_each_kind(std::int64_t all, std::int64_t size, const Body& body) {
    const std::int64_t last = (all - 1) / size * size;
    body(std::int64_t{0}, std::min(size, all));
    if (size < last) body(size, size);
    if (last > 0) body(last, all - last);
  }

  // x weight^T, where the weight is a tile's.
  ThreadProduct logits(std::int64_t count, std::int64_t tile, std::int64_t logits_stride) const;
  // dlogits weight, summed over tiles of classes, for a block of columns.
  ThreadProduct input_gradient(std::int64_t count, std::int64_t tile, std::int64_t block, bool sums) const;
  // dlogits^T x
  ThreadProduct weight_gradient(std::int64_t count, std::int64_t tile, std::int64_t logits_stride, bool sums) const;

  // All of them.
  ThreadProducts products() const;

  struct Pieces {
    std::byte *losses, *x, *logits, *sum, *scratch, *scratchpads;
  };
  Pieces cut(WorkspaceCutter& cutter, const ThreadProducts& products) const;

  // A thread's own: a tile of the weight as floats, a block of x and its logits where these are made again, and a result that is
  // rounded.
  struct Scratch {
    std::byte *weight, *x, *logits, *result;
  };
  Scratch cut_scratch(WorkspaceCutter& cutter) const;
  Scratch scratch_of(int thread, const Pieces& pieces) const;

 private:
  Bytes scratch_bytes() const;
};

}  // namespace snug::backends::cpu
