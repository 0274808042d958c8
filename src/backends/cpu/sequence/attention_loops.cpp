#include "backends/cpu/sequence/attention_loops.h"

#include <cmath>
#include <limits>

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/attention_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/attention-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct ForwardScratch {
  std::int64_t width;                          // of rows of keys and values
  float *queries, *sums;                       // a row for each column of the head: the queries are lanes
  float *keys, *values;                        // a row for each key
  float *scores, *kept;                        // a row for each key, queries as lanes
  float *largest, *total, *rescale, *inverse;  // of each query

  ForwardScratch(std::int64_t head_size, float* begin) : width(padded_head(head_size)) {
    ScratchCutter cutter(begin);
    queries = cutter.cut(width * kTile);
    sums = cutter.cut(width * kTile);
    keys = cutter.cut(kTile * width);
    values = cutter.cut(kTile * width);
    scores = cutter.cut(kTile * kTile);
    kept = cutter.cut(kTile * kTile);
    largest = cutter.cut(kTile);
    total = cutter.cut(kTile);
    rescale = cutter.cut(kTile);
    inverse = cutter.cut(kTile);
  }
};

// A block of queries on its way over the keys.
template <typename T>
class ForwardBlock {
 public:
  ForwardBlock(const AttentionInputs<T>& in, AttentionBlock block, float* scratch)
      : in_(in),
        block_(block),
        seen_(in, block.example, block.first),
        s_(in.g.head_size, scratch),
        kv_head_(block.head / in.g.heads_per_kv_head()) {
    load_queries_of(in, block.example, block.first, block.head, s_.keys);
    transpose(s_.keys, s_.width, kTile, s_.width, in.scale * kLog2OfE, s_.queries, kTile);
    std::fill_n(s_.largest, kTile, std::numeric_limits<float>::lowest());
    std::fill_n(s_.total, kTile, 0.0F);
  }

  // The sums over all keys, with their values.
  void add_all(bool with_values) {
    if (with_values) std::fill_n(s_.sums, s_.width * kTile, 0.0F);
    for (std::int64_t key = 0; key < seen_.most(); key += kTile) {
      load_keys_of(in_, block_.example, key, in_.g.key_column(kv_head_), s_.keys);
      if (with_values) load_keys_of(in_, block_.example, key, in_.g.value_column(kv_head_), s_.values);
      for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
        const std::int64_t visible = seen_.visible(panel, key);
        if (visible == 0) continue;
        const std::int64_t rows = score(panel, key, visible);
        take_exponentials(panel, rows);
        if (!with_values) continue;
        if (in_.draws.threshold > 0) drop(panel, key, rows);
        multiply_panel<Start::scaled_sum, true>({s_.values, 1, s_.width}, s_.scores + panel, kTile, in_.g.head_size, visible,
                                                {s_.sums + panel, kTile}, s_.rescale + panel);
      }
    }
    for (std::int64_t i = 0; i < kTile; ++i) s_.inverse[i] = s_.total[i] == 0 ? 0.0F : 1 / s_.total[i];
  }

  void write_results(T* y, float* log_sum_exp) {
    const TileFloats d;
    for (std::int64_t row = 0; row < in_.g.head_size; ++row) {
      for (std::int64_t column = 0; column < kTile; column += tile_lanes()) {
        float* const at = s_.sums + row * kTile + column;
        hn::StoreU(hn::Mul(hn::LoadU(d, at), hn::LoadU(d, s_.inverse + column)), d, at);
      }
    }
    transpose(s_.sums, kTile, s_.width, kTile, 1.0F, s_.keys, s_.width);
    const std::int64_t first_row = block_.example * in_.g.length + block_.first;
    const std::int64_t columns = in_.g.width();
    store_rows(s_.keys, s_.width, seen_.queries, in_.g.head_size, y + first_row * columns + in_.g.query_column(block_.head),
               columns);
    for (std::int64_t i = 0; i < seen_.queries; ++i) {
      log_sum_exp[(first_row + i) * in_.g.heads + block_.head] =
          s_.total[i] == 0 ? ops::kNothingSeen : s_.largest[i] * kLn2 + std::log(s_.total[i]);
    }
  }

  // After the sums, once more over the keys.
  void write_probabilities(T* probabilities) {
    const TileFloats d;
    const std::int64_t step = in_.g.heads * in_.g.key_length;
    T* const to = probabilities + (block_.example * in_.g.length + block_.first) * step + block_.head * in_.g.key_length;
    for (std::int64_t key = 0; key < in_.g.key_length; key += kTile) {
      if (key < seen_.most()) load_keys_of(in_, block_.example, key, in_.g.key_column(kv_head_), s_.keys);
      std::fill_n(s_.scores, kTile * kTile, 0.0F);
      for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
        const std::int64_t visible = seen_.visible(panel, key);
        if (visible == 0) continue;
        const std::int64_t rows = score(panel, key, visible);
        for_each_score(rows, [&](std::int64_t, std::int64_t column, std::int64_t at) {
          float* const place = s_.scores + panel + at;
          const auto below = hn::Sub(hn::LoadU(d, place), hn::LoadU(d, s_.largest + panel + column));
          hn::StoreU(hn::Mul(small_power_of_two(d, below), hn::LoadU(d, s_.inverse + panel + column)), d, place);
        });
      }
      transpose(s_.scores, kTile, kTile, kTile, 1.0F, s_.kept, kTile);
      store_rows(s_.kept, kTile, seen_.queries, std::min(kTile, in_.g.key_length - key), to + key, step);
    }
  }

 private:
  // Scores of a panel with the keys of a tile, minus infinity where a query does not see a key; returns how many rows.
  std::int64_t score(std::int64_t panel, std::int64_t key, std::int64_t visible) {
    const std::int64_t rows = computed_rows(visible);
    multiply_panel<Start::zero, false>({s_.keys, s_.width, 1}, s_.queries + panel, kTile, rows, in_.g.head_size,
                                       {s_.scores + panel, kTile}, nullptr);
    if (!seen_.sees_all(panel, key, rows)) mask_unseen(seen_, panel, key, rows, kMinusInfinity, s_.scores + panel);
    return rows;
  }

  // Scores become exponentials relative to the largest so far, and what was summed before is to be rescaled to that.
  void take_exponentials(std::int64_t panel, std::int64_t rows) {
    const TileFloats d;
    TileVector before[kProductVectors], largest[kProductVectors], total[kProductVectors];
    for (std::int64_t v = 0; v < kProductVectors; ++v) {
      before[v] = largest[v] = hn::LoadU(d, s_.largest + panel + v * tile_lanes());
      total[v] = hn::Zero(d);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t v = 0; v < kProductVectors; ++v)
        largest[v] = hn::Max(largest[v], hn::LoadU(d, s_.scores + row * kTile + panel + v * tile_lanes()));
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t v = 0; v < kProductVectors; ++v) {
        float* const place = s_.scores + row * kTile + panel + v * tile_lanes();
        const auto power = small_power_of_two(d, hn::Sub(hn::LoadU(d, place), largest[v]));
        hn::StoreU(power, d, place);
        total[v] = hn::Add(total[v], power);
      }
    }
    for (std::int64_t v = 0; v < kProductVectors; ++v) {
      const std::int64_t at = panel + v * tile_lanes();
      const auto rescale = small_power_of_two(d, hn::Sub(before[v], largest[v]));
      hn::StoreU(rescale, d, s_.rescale + at);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, s_.total + at), rescale, total[v]), d, s_.total + at);
      hn::StoreU(largest[v], d, s_.largest + at);
    }
  }

  void drop(std::int64_t panel, std::int64_t key, std::int64_t rows) {
    const TileFloats d;
    draw_kept(in_, block_.example, block_.head, block_.first + panel, key, rounded_up(rows, 4), s_.kept + panel);
    for_each_score(rows, [&](std::int64_t, std::int64_t, std::int64_t at) {
      float* const place = s_.scores + panel + at;
      hn::StoreU(hn::Mul(hn::LoadU(d, place), hn::LoadU(d, s_.kept + panel + at)), d, place);
    });
  }

  const AttentionInputs<T>& in_;
  const AttentionBlock block_;
  const SeenKeys seen_;
  const ForwardScratch s_;
  const std::int64_t kv_head_;
};

template <typename T>
void forward(const AttentionInputs<T>& in, AttentionBlock queries, T* y, float* log_sum_exp, float* scratch) {
  ForwardBlock<T> block(in, queries, scratch);
  block.add_all(true);
  block.write_results(y, log_sum_exp);
}

template <typename T>
void probabilities(const AttentionInputs<T>& in, AttentionBlock queries, T* to, float* scratch) {
  ForwardBlock<T> block(in, queries, scratch);
  block.add_all(false);
  block.write_probabilities(to);
}

template <typename T>
constexpr AttentionLoops<T> kAttentionLoops{.forward = forward<T>, .probabilities = probabilities<T>};

SNUG_DEFINE_TABLES(AttentionLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

std::int64_t attention_scratch(std::int64_t head_size) {
  const std::int64_t width = (head_size + 15) / 16 * 16;
  return kAttentionTile * (4 * width + 2 * kAttentionTile + 4);
}

SNUG_EXPORT_TABLES(AttentionLoops, attention_loops)

}  // namespace snug::backends::cpu::simd
#endif
