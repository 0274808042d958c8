// Attention, backward, from the log_sum_exp. Two kernels, which compute the probabilities each for itself: the first takes a tile
// of queries through the keys that they see, the second a tile of keys through the queries that see them. So each gradient is
// summed up in one place and in one order.
#pragma once

#include "backends/cuda/sequence/attention_tiles.cuh"

namespace snug::backends::cuda {

// Rows of the passing tiles that a product takes at once.
inline constexpr int kGradRows = 32;

// The gradients of queries, and dy times y.
template <typename Machine, typename T, int D, bool Drops>
class QueryGradTiles {
 public:
  static constexpr std::size_t kSharedBytes = (2 * kOwnRows<D> + 4 * kPassingRows) * D * sizeof(T);

  SNUG_DEVICE static void run(const launch::AttentionGradOperands<T>& o, const launch::AttentionShape& shape,
                              const launch::AttentionRule& rule) {
    const TilePlace place(Machine::block(), shape.examples, shape.length, shape.heads, kOwnRows<D>, shape.causal);
    const TiledHeads at(shape, place.example);
    const std::uint32_t kv_head = place.head / (shape.heads / shape.kv_heads);
    const int length = static_cast<int>(shape.length);
    const int size = static_cast<int>(shape.head_size);
    const int first_query = place.tile * kOwnRows<D>;
    const int keys = keys_of_example(shape, rule, place.example);
    const int seen = keys_seen(first_query + kOwnRows<D> - 1, keys, shape.causal);
    const T* all_keys = o.keys + at.key(kv_head);
    const T* all_values = o.keys + at.value(kv_head);
    const T* dy = o.dy + at.result(place.head);

    T* shared = Machine::template shared<T>();
    const OneTile queries(shared);
    const OneTile gradients(shared + kOwnRows<D> * D);
    const auto key_tile = [&](int buffer) { return OneTile(shared + (2 * kOwnRows<D> + buffer * 2 * kPassingRows) * D); };
    const auto value_tile = [&](int buffer) { return OneTile(shared + (2 * kOwnRows<D> + (buffer * 2 + 1) * kPassingRows) * D); };
    const auto load = [&](int first_key, int buffer) {
      key_tile(buffer).template load<kPassingRows>(all_keys, shape.key_width, first_key, keys, size);
      value_tile(buffer).template load<kPassingRows>(all_values, shape.key_width, first_key, keys, size);
    };
    queries.template load<kOwnRows<D>>(o.queries + at.query(place.head), shape.query_width, first_query, length, size);
    gradients.template load<kOwnRows<D>>(dy, at.result_width(), first_query, length, size);
    Machine::commit();
    if (seen > 0) load(0, 0);
    Machine::commit();

    const int warp_row = Machine::thread() / 32 * kWarpRows<D>;
    State state;
    state.start(rule, first_query + warp_row, keys, shape.causal);
    state.read_statistics(dy, o.y + at.result(place.head), o.log_sum_exp + at.statistic(place.head),
                          o.dy_times_y + at.statistic(place.head), shape);
    Machine::template wait<1>();
    Machine::sync();
    HeldRows<D> held_queries;
    HeldRows<D> held_gradients;
    held_queries.load(queries, warp_row);
    held_gradients.load(gradients, warp_row);
    const AttentionDraws draws(shape, rule, place.example, place.head);
    int buffer = 0;
    for (int first_key = 0; first_key < seen; first_key += kPassingRows) {
      Machine::template wait<0>();
      Machine::sync();
      if (first_key + kPassingRows < seen) load(first_key + kPassingRows, 1 - buffer);
      Machine::commit();
      SNUG_NOT_UNROLLED for (int row = 0; row < kPassingRows; row += kGradRows) {
        if (first_key + row < keys_seen(state.first_query + kWarpRows<D> - 1, keys, shape.causal))
          state.add(held_queries, held_gradients, key_tile(buffer), value_tile(buffer), row, first_key + row, draws);
      }
      buffer = 1 - buffer;
    }
    float factors[kRowTiles<D>][2];
    SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
      SNUG_UNROLL for (int half = 0; half < 2; ++half) factors[r][half] = rule.scale;
    }
    queries.store(state.sums, factors, warp_row, o.dqueries + at.query(place.head), shape.query_width, state.first_query, length,
                  size);
  }

 private:
  using OneTile = Tile<Machine, T, D>;
  static constexpr int kKeyTiles = kGradRows / 8;
  using Pairs = Sums<kRowTiles<D>, kKeyTiles>;

  // A warp's queries.
  struct State {
    int first_query, keys;
    bool causal;
    float log2_scale, kept;
    Sums<kRowTiles<D>, D / 8> sums;
    float log2_sum_exp[kRowTiles<D>][2], dy_times_y[kRowTiles<D>][2];

    SNUG_DEVICE void start(const launch::AttentionRule& rule, int query, int key_count, bool is_causal) {
      first_query = query;
      keys = key_count;
      causal = is_causal;
      log2_scale = rule.scale * kLog2OfE;
      kept = rule.kept;
      sums.clear();
    }

    SNUG_DEVICE int query(int r, int half) const { return first_query + r * 16 + half * 8 + Machine::thread() % 32 / 4; }

    SNUG_DEVICE void read_statistics(const T* dy, const T* y, const float* log_sum_exp, float* products,
                                     const launch::AttentionShape& shape) {
      const std::size_t width = std::size_t{shape.heads} * shape.head_size;
      const int lane_of_row = Machine::thread() % 4;
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          const auto row = static_cast<std::size_t>(query(r, half));
          const bool inside = row < shape.length;
          float sum = 0;
          for (std::size_t column = static_cast<std::size_t>(lane_of_row) * 8; inside && column < shape.head_size; column += 32)
            sum = Machine::dot8(dy + row * width + column, y + row * width + column, sum);
          sum = sum_of_row<Machine>(sum);
          if (inside && lane_of_row == 0) products[row * shape.heads] = sum;
          dy_times_y[r][half] = sum;
          log2_sum_exp[r][half] = inside ? log_sum_exp[row * shape.heads] * kLog2OfE : 0.0F;
        }
      }
    }

    SNUG_DEVICE void add(const HeldRows<D>& queries, const HeldRows<D>& gradients, const OneTile& key_rows,
                         const OneTile& value_rows, int row, int first_key, const AttentionDraws& draws) {
      Pairs scores;
      scores.clear();
      add_products_of_rows(scores, queries, key_rows, row);
      if (first_key + kGradRows > keys_seen(first_query, keys, causal)) hide(scores, first_key);
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) {
          SNUG_UNROLL for (int e = 0; e < 4; ++e) scores[r][c][e] =
              Machine::exp2(fmaf(scores[r][c][e], log2_scale, -log2_sum_exp[r][e / 2]));
        }
      }
      Pairs of_probability;
      of_probability.clear();
      add_products_of_rows(of_probability, gradients, value_rows, row);
      if constexpr (Drops) drop(of_probability, first_key, draws);
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) {
          SNUG_UNROLL for (int e = 0; e < 4; ++e) scores[r][c][e] *= of_probability[r][c][e] - dy_times_y[r][e / 2];
        }
      }
      add_weighted_rows(sums, scores, key_rows, row);
    }

    SNUG_DEVICE void hide(Pairs& scores, int first_key) const {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int e = 0; e < 4; ++e)
            hide_from<Machine>(scores, r, e, keys_seen(query(r, e / 2), keys, causal) - first_key);
      }
    }

    SNUG_DEVICE void drop(Pairs& of_probability, int first_key, const AttentionDraws& draws) const {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) {
          const int key = first_key + c * 8 + Machine::thread() % 4 * 2;
          const std::uint32_t bits = kept_of_query_rows<Machine>(draws, query(r, 0), key);
          SNUG_UNROLL for (int e = 0; e < 4; ++e) of_probability[r][c][e] *= (bits >> e & 1U) != 0 ? kept : 0.0F;
        }
      }
    }
  };
};

// The gradients of keys and values, after the queries' kernel: over the heads that share a key head in order, and their queries
// in order. Products are transposed: rows are keys.
template <typename Machine, typename T, int D, bool Drops>
class KeyGradTiles {
  static constexpr std::size_t kTileBytes = (2 * kOwnRows<D> + 4 * kPassingRows) * D * sizeof(T);

 public:
  static constexpr std::size_t kSharedBytes = kTileBytes + 4 * kPassingRows * sizeof(float);

  SNUG_DEVICE static void run(const launch::AttentionGradOperands<T>& o, const launch::AttentionShape& shape,
                              const launch::AttentionRule& rule) {
    const TilePlace place(Machine::block(), shape.examples, shape.key_length, shape.kv_heads, kOwnRows<D>, false);
    const TiledHeads at(shape, place.example);
    const int length = static_cast<int>(shape.length);
    const int key_length = static_cast<int>(shape.key_length);
    const int size = static_cast<int>(shape.head_size);
    const int first_key = place.tile * kOwnRows<D>;
    const int keys = keys_of_example(shape, rule, place.example);
    const int first_query = shape.causal ? first_key : 0;
    const int tiles = (length - first_query + kPassingRows - 1) / kPassingRows;
    const std::uint32_t group = shape.heads / shape.kv_heads;
    const std::uint32_t first_head = place.head * group;
    const int passes = first_key < keys ? tiles * static_cast<int>(group) : 0;
    const auto head_of = [&](int pass) { return first_head + static_cast<std::uint32_t>(pass / tiles); };
    const auto query_of = [&](int pass) { return first_query + pass % tiles * kPassingRows; };

    T* shared = Machine::template shared<T>();
    const OneTile key_rows(shared);
    const OneTile value_rows(shared + kOwnRows<D> * D);
    const auto query_tile = [&](int buffer) { return OneTile(shared + (2 * kOwnRows<D> + buffer * 2 * kPassingRows) * D); };
    const auto gradient_tile = [&](int buffer) {
      return OneTile(shared + (2 * kOwnRows<D> + (buffer * 2 + 1) * kPassingRows) * D);
    };
    float* statistics = Machine::template shared<float>() + kTileBytes / sizeof(float);
    const auto load = [&](int pass, int buffer) {
      const std::uint32_t head = head_of(pass);
      const int query = query_of(pass);
      query_tile(buffer).template load<kPassingRows>(o.queries + at.query(head), shape.query_width, query, length, size);
      gradient_tile(buffer).template load<kPassingRows>(o.dy + at.result(head), at.result_width(), query, length, size);
      // The log_sum_exp of each query, then dy times y.
      static_assert(kTileThreads == 2 * kPassingRows);
      const bool is_first = Machine::thread() < kPassingRows;
      const int row = query + Machine::thread() % kPassingRows;
      const float* from = (is_first ? o.log_sum_exp : o.dy_times_y) + at.statistic(head);
      Machine::copy4(statistics + buffer * 2 * kPassingRows + Machine::thread(),
                     row < length ? from + static_cast<std::size_t>(row) * shape.heads : from, row < length);
    };

    const int warp_row = Machine::thread() / 32 * kWarpRows<D>;
    State state;
    state.start(rule, first_key + warp_row, shape.causal);
    if (passes > 0) {
      key_rows.template load<kOwnRows<D>>(o.keys + at.key(place.head), shape.key_width, first_key, keys, size);
      value_rows.template load<kOwnRows<D>>(o.keys + at.value(place.head), shape.key_width, first_key, keys, size);
      load(0, 0);
    }
    Machine::commit();
    int buffer = 0;
    for (int pass = 0; pass < passes; ++pass) {
      Machine::template wait<0>();
      Machine::sync();
      if (pass + 1 < passes) load(pass + 1, 1 - buffer);
      Machine::commit();
      const int query = query_of(pass);
      const AttentionDraws draws(shape, rule, place.example, head_of(pass));
      SNUG_NOT_UNROLLED for (int row = 0; row < kPassingRows; row += kGradRows) {
        const bool sees = query + row < length && (!shape.causal || query + row + kGradRows > state.first_key);
        if (sees && state.first_key < keys) {
          state.add(TileRows<OneTile>{key_rows, warp_row}, TileRows<OneTile>{value_rows, warp_row}, query_tile(buffer),
                    gradient_tile(buffer), statistics + buffer * 2 * kPassingRows, row, query + row, draws);
        }
      }
      buffer = 1 - buffer;
    }

    float key_factors[kRowTiles<D>][2];
    float value_factors[kRowTiles<D>][2];
    SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
      SNUG_UNROLL for (int half = 0; half < 2; ++half) {
        key_factors[r][half] = rule.scale;
        value_factors[r][half] = 1;
      }
    }
    state.clear_from(keys);
    key_rows.store(state.key_sums, key_factors, warp_row, o.dkeys + at.key(place.head), shape.key_width, state.first_key,
                   key_length, size);
    value_rows.store(state.value_sums, value_factors, warp_row, o.dkeys + at.value(place.head), shape.key_width, state.first_key,
                     key_length, size);
  }

 private:
  using OneTile = Tile<Machine, T, D>;
  static constexpr int kQueryTiles = kGradRows / 8;
  using Pairs = Sums<kRowTiles<D>, kQueryTiles>;

  // A warp's keys.
  struct State {
    int first_key;
    bool causal;
    float log2_scale, kept;
    Sums<kRowTiles<D>, D / 8> key_sums, value_sums;

    SNUG_DEVICE void start(const launch::AttentionRule& rule, int key_position, bool is_causal) {
      first_key = key_position;
      causal = is_causal;
      log2_scale = rule.scale * kLog2OfE;
      kept = rule.kept;
      key_sums.clear();
      value_sums.clear();
    }

    SNUG_DEVICE int key(int r, int half) const { return first_key + r * 16 + half * 8 + Machine::thread() % 32 / 4; }

    // Queries beyond the last one need no care: they and their gradients are zeros.
    template <typename Rows>
    SNUG_DEVICE void add(const Rows& keys, const Rows& values, const OneTile& queries, const OneTile& gradients,
                         const float* statistics, int row, int first_query, const AttentionDraws& draws) {
      const int column = Machine::thread() % 4 * 2;
      Pairs scores;
      scores.clear();
      add_products_of_rows(scores, keys, queries, row);
      if (causal && first_query < first_key + kWarpRows<D> - 1) hide(scores, first_query);
      SNUG_UNROLL for (int c = 0; c < kQueryTiles; ++c) {
        SNUG_UNROLL for (int i = 0; i < 2; ++i) {
          const float log2_sum_exp = statistics[row + c * 8 + column + i] * kLog2OfE;
          SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
            SNUG_UNROLL for (int e = i; e < 4; e += 2) scores[r][c][e] =
                Machine::exp2(fmaf(scores[r][c][e], log2_scale, -log2_sum_exp));
          }
        }
      }

      std::uint32_t bits[kRowTiles<D>][kQueryTiles];
      if constexpr (Drops) {
        Pairs dropped;
        SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
          SNUG_UNROLL for (int c = 0; c < kQueryTiles; ++c) {
            bits[r][c] = kept_of_key_rows<Machine>(draws, key(r, 0), first_query + c * 8 + column);
            SNUG_UNROLL for (int e = 0; e < 4; ++e) dropped[r][c][e] =
                (bits[r][c] >> e & 1U) != 0 ? scores[r][c][e] * kept : 0.0F;
          }
        }
        add_weighted_rows(value_sums, dropped, gradients, row);
      } else {
        add_weighted_rows(value_sums, scores, gradients, row);
      }

      Pairs of_probability;
      of_probability.clear();
      add_products_of_rows(of_probability, values, gradients, row);
      SNUG_UNROLL for (int c = 0; c < kQueryTiles; ++c) {
        SNUG_UNROLL for (int i = 0; i < 2; ++i) {
          const float dy_times_y = statistics[kPassingRows + row + c * 8 + column + i];
          SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
            SNUG_UNROLL for (int e = i; e < 4; e += 2) {
              float gradient = of_probability[r][c][e];
              if constexpr (Drops) gradient *= (bits[r][c] >> e & 1U) != 0 ? kept : 0.0F;
              scores[r][c][e] *= gradient - dy_times_y;
            }
          }
        }
      }
      add_weighted_rows(key_sums, scores, queries, row);
    }

    // A key is hidden from the queries before it.
    SNUG_DEVICE void hide(Pairs& scores, int first_query) const {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int e = 0; e < 4; ++e) hide_before<Machine>(scores, r, e, key(r, e / 2) - first_query);
      }
    }

    // Keys that nobody sees: what was summed up for them belongs to rows of zeros.
    SNUG_DEVICE void clear_from(int keys) {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int e = 0; e < 4; ++e) {
          if (key(r, e / 2) < keys) continue;
          SNUG_UNROLL for (int c = 0; c < D / 8; ++c) {
            key_sums[r][c][e] = 0;
            value_sums[r][c][e] = 0;
          }
        }
      }
    }
  };
};

}  // namespace snug::backends::cuda
