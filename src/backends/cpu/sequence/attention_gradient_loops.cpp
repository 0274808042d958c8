#include "backends/cpu/sequence/attention_loops.h"

// See simd/loops.cpp for how a file is compiled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sequence/attention_gradient_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/sequence/attention-inl.h"
#include "backends/cpu/simd/tables.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

struct GradientScratch {
  std::int64_t width;                     // of rows of a head
  float *queries, *dy, *keys, *values;    // a row for each query or key
  float *queries_across, *dy_across;      // a row for each column of the head, the queries as lanes
  float* dqueries_across;                 // likewise: the sum over keys
  float *probabilities, *dscores, *kept;  // a row for each key, queries as lanes
  float *log_sum_exp, *of_result;         // of each query: in units of ln 2; the sum over keys of probability times gradient

  GradientScratch(std::int64_t head_size, float* begin) : width(padded_head(head_size)) {
    ScratchCutter cutter(begin);
    for (float** array : {&queries, &dy, &keys, &values, &queries_across, &dy_across, &dqueries_across})
      *array = cutter.cut(kTile * width);
    for (float** array : {&probabilities, &dscores, &kept}) *array = cutter.cut(kTile * kTile);
    for (float** array : {&log_sum_exp, &of_result}) *array = cutter.cut(kTile);
  }
};

// Gradients of the keys and values of a tile, or of all: rows of floats.
struct KeySums {
  float *keys, *values;
};

// One head of keys of one example, and one query head at a time of those that read it.
template <typename T>
class HeadGradient {
 public:
  HeadGradient(const AttentionInputs<T>& in, const AttentionGradient<T>& out, std::int64_t example, std::int64_t kv_head,
               float* scratch)
      : in_(in), out_(out), example_(example), kv_head_(kv_head), s_(in.g.head_size, scratch) {}

  std::int64_t width() const { return s_.width; }

  // Over all keys that the queries see: their own gradient, and where there are sums, those of the keys.
  void pass_over_keys(std::int64_t head, std::int64_t first, const KeySums* sums) {
    const SeenKeys seen(in_, example_, first);
    load_queries(seen, head, first);
    std::fill_n(s_.dqueries_across, s_.width * kTile, 0.0F);
    for (std::int64_t key = 0; key < seen.most(); key += kTile) {
      load_keys(key);
      fill_tile(seen, head, first, key);
      for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
        const std::int64_t visible = seen.visible(panel, key);
        multiply_panel<Start::sum, true>({s_.keys, 1, s_.width}, s_.dscores + panel, kTile, in_.g.head_size, visible,
                                         {s_.dqueries_across + panel, kTile}, nullptr);
      }
      if (sums != nullptr) add_to_keys(seen, key, {sums->keys + key * s_.width, sums->values + key * s_.width});
    }
    transpose(s_.dqueries_across, kTile, s_.width, kTile, 1.0F, s_.queries, s_.width);
    const std::int64_t columns = in_.g.query_columns();
    store_rows(s_.queries, s_.width, seen.queries, in_.g.head_size,
               out_.dqueries + row_at(first) * columns + in_.g.query_column(head), columns);
  }

  // What the queries of a block add to the gradients of the tile of keys that was loaded.
  void add_queries_to_keys(std::int64_t head, std::int64_t first, std::int64_t key, const KeySums& sums) {
    const SeenKeys seen(in_, example_, first);
    if (seen.most() <= key) return;
    load_queries(seen, head, first);
    // The sum over the keys needs the others' keys and values where it is not known from the result.
    if (out_.probabilities != nullptr) load_keys(key);
    fill_tile(seen, head, first, key);
    add_to_keys(seen, key, sums);
  }

  void load_keys(std::int64_t key) {
    load_keys_of(in_, example_, key, in_.g.key_column(kv_head_), s_.keys);
    load_keys_of(in_, example_, key, in_.g.value_column(kv_head_), s_.values);
  }

  // The gradients of keys and values from position `first` on.
  void write(const KeySums& sums, std::int64_t first, std::int64_t count) const {
    const std::int64_t columns = in_.g.key_columns();
    T* const to = out_.dkeys + (example_ * in_.g.key_length + first) * columns;
    store_rows(sums.keys, s_.width, count, in_.g.head_size, to + in_.g.key_column(kv_head_), columns);
    store_rows(sums.values, s_.width, count, in_.g.head_size, to + in_.g.value_column(kv_head_), columns);
  }

 private:
  std::int64_t row_at(std::int64_t position) const { return example_ * in_.g.length + position; }

  void load_queries(const SeenKeys& seen, std::int64_t head, std::int64_t first) {
    const std::int64_t columns = in_.g.width();
    const std::int64_t begin = row_at(first) * columns + in_.g.query_column(head);
    load_queries_of(in_, example_, first, head, s_.queries);
    load_rows(out_.dy + begin, columns, seen.queries, in_.g.head_size, s_.dy, s_.width, kTile);
    transpose(s_.queries, s_.width, kTile, s_.width, in_.scale * kLog2OfE, s_.queries_across, kTile);
    transpose(s_.dy, s_.width, kTile, s_.width, 1.0F, s_.dy_across, kTile);
    std::fill_n(s_.of_result, kTile, 0.0F);
    if (out_.probabilities != nullptr) return sum_over_keys(seen, head, first);
    std::fill_n(s_.log_sum_exp, kTile, 0.0F);
    for (std::int64_t i = 0; i < seen.queries; ++i) {
      s_.log_sum_exp[i] = out_.log_sum_exp[(row_at(first) + i) * in_.g.heads + head] * kLog2OfE;
      s_.of_result[i] = product_with(s_.dy + i * s_.width, out_.y + begin + i * columns);
    }
  }

  float product_with(const float* gradient, const T* result) const {
    const Floats d;
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes() <= in_.g.head_size; i += lanes()) sum = hn::MulAdd(hn::LoadU(d, gradient + i), load(d, result + i), sum);
    float total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < in_.g.head_size; ++i) total += gradient[i] * to_float(result[i]);
    return total;
  }

  void sum_over_keys(const SeenKeys& seen, std::int64_t head, std::int64_t first) {
    const TileFloats d;
    for (std::int64_t key = 0; key < seen.most(); key += kTile) {
      load_keys(key);
      load_probabilities(seen, head, first, key);
      for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
        const std::int64_t rows = computed_rows(seen.visible(panel, key));
        if (!seen.sees_all(panel, key, rows)) mask_unseen(seen, panel, key, rows, 0.0F, s_.probabilities + panel);
        multiply_by_values(panel, rows);
        if (in_.draws.threshold > 0) drop_gradients(head, first, panel, key, rows);
        for_each_score(rows, [&](std::int64_t, std::int64_t column, std::int64_t at) {
          float* const sum = s_.of_result + panel + column;
          const auto product = hn::Mul(hn::LoadU(d, s_.probabilities + panel + at), hn::LoadU(d, s_.dscores + panel + at));
          hn::StoreU(hn::Add(hn::LoadU(d, sum), product), d, sum);
        });
      }
    }
  }

  // Rows of kept probabilities become columns; `dscores` holds them on the way.
  void load_probabilities(const SeenKeys& seen, std::int64_t head, std::int64_t first, std::int64_t key) {
    const std::int64_t step = in_.g.heads * in_.g.key_length;
    const T* const from = out_.probabilities + row_at(first) * step + head * in_.g.key_length + key;
    load_rows(from, step, seen.queries, std::min(kTile, in_.g.key_length - key), s_.dscores, kTile, kTile);
    transpose(s_.dscores, kTile, kTile, kTile, 1.0F, s_.probabilities, kTile);
  }

  // Gradients of dropped probabilities, where those of scores will be.
  void multiply_by_values(std::int64_t panel, std::int64_t rows) {
    multiply_panel<Start::zero, false>({s_.values, s_.width, 1}, s_.dy_across + panel, kTile, rows, in_.g.head_size,
                                       {s_.dscores + panel, kTile}, nullptr);
  }

  void drop_gradients(std::int64_t head, std::int64_t first, std::int64_t panel, std::int64_t key, std::int64_t rows) {
    const TileFloats d;
    draw_kept(in_, example_, head, first + panel, key, rounded_up(rows, 4), s_.kept + panel);
    for_each_score(rows, [&](std::int64_t, std::int64_t, std::int64_t at) {
      float* const place = s_.dscores + panel + at;
      hn::StoreU(hn::Mul(hn::LoadU(d, place), hn::LoadU(d, s_.kept + panel + at)), d, place);
    });
  }

  // The tile's probabilities after dropout, and the gradients of its scores times the scale: 0 where a query does not see a key,
  // in all rows that are computed.
  void fill_tile(const SeenKeys& seen, std::int64_t head, std::int64_t first, std::int64_t key) {
    const TileFloats d;
    const bool drops = in_.draws.threshold > 0;
    if (out_.probabilities != nullptr) load_probabilities(seen, head, first, key);
    for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
      const std::int64_t rows = computed_rows(seen.visible(panel, key));
      if (out_.probabilities == nullptr) {
        multiply_panel<Start::zero, false>({s_.keys, s_.width, 1}, s_.queries_across + panel, kTile, rows, in_.g.head_size,
                                           {s_.probabilities + panel, kTile}, nullptr);
        for_each_score(rows, [&](std::int64_t, std::int64_t column, std::int64_t at) {
          float* const place = s_.probabilities + panel + at;
          const auto power = hn::Sub(hn::LoadU(d, place), hn::LoadU(d, s_.log_sum_exp + panel + column));
          hn::StoreU(small_power_of_two(d, power), d, place);
        });
      }
      if (!seen.sees_all(panel, key, rows)) mask_unseen(seen, panel, key, rows, 0.0F, s_.probabilities + panel);
      multiply_by_values(panel, rows);
      if (drops) drop_gradients(head, first, panel, key, rows);
      for_each_score(rows, [&](std::int64_t, std::int64_t column, std::int64_t at) {
        float* const probability = s_.probabilities + panel + at;
        float* const gradient = s_.dscores + panel + at;
        const auto share = hn::LoadU(d, probability);
        const auto difference = hn::Sub(hn::LoadU(d, gradient), hn::LoadU(d, s_.of_result + panel + column));
        hn::StoreU(hn::Mul(hn::Mul(share, hn::Set(d, in_.scale)), difference), d, gradient);
        if (drops) hn::StoreU(hn::Mul(share, hn::LoadU(d, s_.kept + panel + at)), d, probability);
      });
    }
  }

  // Groups of keys that the same panels see; the first of these is where the sum over queries begins.
  void add_to_keys(const SeenKeys& seen, std::int64_t key, const KeySums& sums) {
    std::int64_t done = 0;
    for (std::int64_t panel = 0; panel < kTile; panel += panel_columns()) {
      const std::int64_t rows = computed_rows(seen.visible(panel, key));
      // Behind the block's last query nothing is visible any more.
      const std::int64_t depth = rounded_up(seen.queries, panel_columns()) - panel;
      if (rows <= done) continue;
      const auto add = [&](const float* scores, const float* from, float* to) {
        multiply<Start::sum, false>({scores + done * kTile + panel, kTile, 1}, from + panel * s_.width, s_.width, rows - done,
                                    s_.width, depth, {to + done * s_.width, s_.width});
      };
      add(s_.probabilities, s_.dy, sums.values);
      add(s_.dscores, s_.queries, sums.keys);
      done = rows;
    }
  }

  const AttentionInputs<T>& in_;
  const AttentionGradient<T>& out_;
  const std::int64_t example_, kv_head_;
  const GradientScratch s_;
};

template <typename T>
void whole_gradient(const AttentionInputs<T>& in, const AttentionGradient<T>& out, std::int64_t example, std::int64_t kv_head,
                    float* sums, float* scratch) {
  HeadGradient<T> gradient(in, out, example, kv_head, scratch);
  const std::int64_t rows = rounded_up(in.g.key_length, kTile);
  const KeySums of_all{.keys = sums, .values = sums + rows * gradient.width()};
  std::fill_n(sums, 2 * rows * gradient.width(), 0.0F);
  const std::int64_t heads = in.g.heads_per_kv_head();
  for (std::int64_t head = kv_head * heads; head < (kv_head + 1) * heads; ++head)
    for (std::int64_t first = 0; first < in.g.length; first += kTile) gradient.pass_over_keys(head, first, &of_all);
  gradient.write(of_all, 0, in.g.key_length);
}

template <typename T>
void query_gradient(const AttentionInputs<T>& in, const AttentionGradient<T>& out, AttentionBlock block, float* scratch) {
  HeadGradient<T>(in, out, block.example, block.head / in.g.heads_per_kv_head(), scratch)
      .pass_over_keys(block.head, block.first, nullptr);
}

template <typename T>
void key_gradient(const AttentionInputs<T>& in, const AttentionGradient<T>& out, AttentionBlock block, float* scratch) {
  HeadGradient<T> gradient(in, out, block.example, block.head, scratch);
  float* const sums = scratch + attention_gradient_scratch(in.g.head_size) - 2 * kTile * gradient.width();
  const KeySums of_tile{.keys = sums, .values = sums + kTile * gradient.width()};
  std::fill_n(sums, 2 * kTile * gradient.width(), 0.0F);
  gradient.load_keys(block.first);
  const std::int64_t heads = in.g.heads_per_kv_head();
  for (std::int64_t head = block.head * heads; head < (block.head + 1) * heads; ++head) {
    for (std::int64_t first = in.g.causal ? block.first : 0; first < in.g.length; first += kTile)
      gradient.add_queries_to_keys(head, first, block.first, of_tile);
  }
  gradient.write(of_tile, block.first, std::min(kTile, in.g.key_length - block.first));
}

template <typename T>
constexpr AttentionGradientLoops<T> kAttentionGradientLoops{
    .whole = whole_gradient<T>, .queries = query_gradient<T>, .keys = key_gradient<T>};

SNUG_DEFINE_TABLES(AttentionGradientLoops)

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::backends::cpu::simd {

namespace {

std::int64_t padded(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

}  // namespace

std::int64_t attention_gradient_scratch(std::int64_t head_size) {
  constexpr std::int64_t kRowsOfAHead = 9;  // seven arrays, and the sums of one tile of keys
  return kAttentionTile * (kRowsOfAHead * padded(head_size, 16) + 3 * kAttentionTile + 2);
}

std::int64_t attention_gradient_sums(const ops::AttentionGeometry& g) {
  return 2 * padded(g.key_length, kAttentionTile) * padded(g.head_size, 16);
}

SNUG_EXPORT_TABLES(AttentionGradientLoops, attention_gradient_loops)

}  // namespace snug::backends::cpu::simd
#endif
