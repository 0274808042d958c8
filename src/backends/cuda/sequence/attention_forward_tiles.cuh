// Attention, forward: a block takes a tile of queries through the tiles of keys that they see.
#pragma once

#include "backends/cuda/sequence/attention_tiles.cuh"

namespace snug::backends::cuda {

template <typename Machine, typename T, int D, bool Drops>
class ForwardTiles {
 public:
  static constexpr std::size_t kSharedBytes = (kOwnRows<D> + 4 * kPassingRows) * D * sizeof(T);

  SNUG_DEVICE static void run(const launch::AttentionOperands<T>& o, const launch::AttentionShape& shape,
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

    T* shared = Machine::template shared<T>();
    const OneTile queries(shared);
    const auto key_tile = [&](int buffer) { return OneTile(shared + (kOwnRows<D> + buffer * 2 * kPassingRows) * D); };
    const auto value_tile = [&](int buffer) { return OneTile(shared + (kOwnRows<D> + (buffer * 2 + 1) * kPassingRows) * D); };
    const auto load = [&](int first_key, int buffer) {
      key_tile(buffer).template load<kPassingRows>(all_keys, shape.key_width, first_key, keys, size);
      value_tile(buffer).template load<kPassingRows>(all_values, shape.key_width, first_key, keys, size);
    };
    queries.template load<kOwnRows<D>>(o.queries + at.query(place.head), shape.query_width, first_query, length, size);
    Machine::commit();
    if (seen > 0) load(0, 0);
    Machine::commit();
    Machine::template wait<1>();
    Machine::sync();

    const int warp_row = Machine::thread() / 32 * kWarpRows<D>;
    HeldRows<D> held;
    held.load(queries, warp_row);
    State state;
    state.start(rule, first_query + warp_row, keys, shape.causal);
    const AttentionDraws draws(shape, rule, place.example, place.head);
    int buffer = 0;
    for (int first_key = 0; first_key < seen; first_key += kPassingRows) {
      Machine::template wait<0>();
      Machine::sync();
      if (first_key + kPassingRows < seen) load(first_key + kPassingRows, 1 - buffer);
      Machine::commit();
      // Barriers are over for this tile: a warp whose queries are all before it may pass it over.
      if (!shape.causal || first_key < state.first_query + kWarpRows<D>)
        state.add(held, key_tile(buffer), value_tile(buffer), first_key, draws);
      buffer = 1 - buffer;
    }
    state.finish(rule, queries, warp_row, o.y + at.result(place.head), at.result_width(),
                 o.log_sum_exp + at.statistic(place.head), shape);
  }

 private:
  using OneTile = Tile<Machine, T, D>;
  static constexpr int kKeyTiles = kPassingRows / 8;

  // A warp's queries: of each, the scores' center, the sum of exponentials relative to it, and the sum of values that they weigh.
  struct State {
    int first_query, keys;
    bool causal;
    float log2_scale;  // what turns products into exponents of 2
    Sums<kRowTiles<D>, D / 8> sums;
    float center[kRowTiles<D>][2], total[kRowTiles<D>][2];  // the total of this lane's columns alone

    SNUG_DEVICE void start(const launch::AttentionRule& rule, int query, int key_count, bool is_causal) {
      first_query = query;
      keys = key_count;
      causal = is_causal;
      log2_scale = rule.scale * kLog2OfE;
      sums.clear();
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          center[r][half] = -INFINITY;
          total[r][half] = 0;
        }
      }
    }

    SNUG_DEVICE int query(int r, int half) const { return first_query + r * 16 + half * 8 + Machine::thread() % 32 / 4; }

    SNUG_DEVICE void add(const HeldRows<D>& held, const OneTile& key_rows, const OneTile& value_rows, int first_key,
                         const AttentionDraws& draws) {
      Sums<kRowTiles<D>, kKeyTiles> scores;
      scores.clear();
      add_products_of_rows(scores, held, key_rows, 0);
      if (first_key + kPassingRows > keys_seen(first_query, keys, causal)) hide(scores, first_key);
      center_on(scores);
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          const float offset = -center[r][half] * log2_scale;
          SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) {
            float& first = scores[r][c][2 * half];
            float& second = scores[r][c][2 * half + 1];
            first = Machine::exp2(fmaf(first, log2_scale, offset));
            second = Machine::exp2(fmaf(second, log2_scale, offset));
            total[r][half] += first + second;
          }
        }
      }
      if constexpr (Drops) drop(scores, first_key, draws);
      add_weighted_rows(sums, scores, value_rows, 0);
    }

    SNUG_DEVICE void drop(Sums<kRowTiles<D>, kKeyTiles>& scores, int first_key, const AttentionDraws& draws) const {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) {
          const int key = first_key + c * 8 + Machine::thread() % 4 * 2;
          const std::uint32_t kept = kept_of_query_rows<Machine>(draws, query(r, 0), key);
          SNUG_UNROLL for (int e = 0; e < 4; ++e) {
            if ((kept >> e & 1U) == 0) scores[r][c][e] = 0;
          }
        }
      }
    }

    SNUG_DEVICE void hide(Sums<kRowTiles<D>, kKeyTiles>& scores, int first_key) const {
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int e = 0; e < 4; ++e)
            hide_from<Machine>(scores, r, e, keys_seen(query(r, e / 2), keys, causal) - first_key);
      }
    }

    // The first tile's largest scores become the centers: each query sees key 0. Later ones only where exponentials would exceed
    // 2^8 otherwise: any center gives the same quotients, and to change it costs as much as the exponentials.
    SNUG_DEVICE void center_on(const Sums<kRowTiles<D>, kKeyTiles>& scores) {
      float largest[kRowTiles<D>][2];
      bool grows = false;
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          float most = -INFINITY;
          SNUG_UNROLL for (int c = 0; c < kKeyTiles; ++c) most =
              fmaxf(most, fmaxf(scores[r][c][2 * half], scores[r][c][2 * half + 1]));
          most = max_of_row<Machine>(most);
          largest[r][half] = fmaxf(center[r][half], most);
          grows = grows || (most - center[r][half]) * log2_scale > 8.0F;
        }
      }
      if (!Machine::any_of_warp(grows)) return;
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          const float before = Machine::exp2((center[r][half] - largest[r][half]) * log2_scale);
          center[r][half] = largest[r][half];
          total[r][half] *= before;
          SNUG_UNROLL for (int c = 0; c < D / 8; ++c) {
            sums[r][c][2 * half] *= before;
            sums[r][c][2 * half + 1] *= before;
          }
        }
      }
    }

    SNUG_DEVICE void finish(const launch::AttentionRule& rule, const OneTile& scratch, int warp_row, T* y, std::uint32_t width,
                            float* log_sum_exp, const launch::AttentionShape& shape) {
      const int length = static_cast<int>(shape.length);
      float factors[kRowTiles<D>][2];
      SNUG_UNROLL for (int r = 0; r < kRowTiles<D>; ++r) {
        SNUG_UNROLL for (int half = 0; half < 2; ++half) {
          const float sum = sum_of_row<Machine>(total[r][half]);
          factors[r][half] = keys == 0 ? 0.0F : (Drops ? rule.kept : 1.0F) / sum;
          if (query(r, half) < length && Machine::thread() % 4 == 0) {
            log_sum_exp[static_cast<std::size_t>(query(r, half)) * shape.heads] =
                keys == 0 ? kNothingSeen : fmaf(center[r][half], rule.scale, Machine::log(sum));
          }
        }
      }
      scratch.store(sums, factors, warp_row, y, width, first_query, length, static_cast<int>(shape.head_size));
    }
  };
};

}  // namespace snug::backends::cuda
