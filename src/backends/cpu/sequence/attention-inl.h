// What the passes of attention share: which keys queries see, and what dropout keeps; for files that Highway compiles once for
// each instruction set. Scores lie transposed, a row for each key: the queries are the lanes of vectors, so that softmax needs no
// sum across lanes, and the products read keys and values as they lie.
#if defined(SNUG_SEQUENCE_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_SEQUENCE_ATTENTION_INL_H
#undef SNUG_SEQUENCE_ATTENTION_INL_H
#else
#define SNUG_SEQUENCE_ATTENTION_INL_H
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "backends/cpu/sequence/attention_loops.h"
#include "backends/cpu/sequence/math-inl.h"
#include "backends/cpu/sequence/tiles-inl.h"
#include "backends/cpu/simd/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {

inline constexpr std::int64_t kTile = kAttentionTile;
// Scores are kept in units of ln 2, since a power of two is cheaper.
inline constexpr float kLog2OfE = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

// Columns of a head in the scratch: zeros behind the last.
inline std::int64_t padded_head(std::int64_t head_size) { return rounded_up(head_size, 16); }

// How many keys each query of a block sees; 0 for those behind the last.
struct SeenKeys {
  float counts[kTile];
  std::int64_t queries;  // in the block

  template <typename T>
  SeenKeys(const AttentionInputs<T>& in, std::int64_t example, std::int64_t first)
      : queries(std::min(kTile, in.g.length - first)) {
    const std::int64_t length_of_example = in.lengths == nullptr ? in.g.key_length : in.lengths[example];
    for (std::int64_t i = 0; i < kTile; ++i) {
      counts[i] =
          i >= queries
              ? 0.0F
              : static_cast<float>(ops::AttentionGeometry::keys_seen(first + i, in.g.key_length, length_of_example, in.g.causal));
    }
  }

  // A later query sees no fewer keys.
  std::int64_t most() const { return static_cast<std::int64_t>(counts[queries - 1]); }
  // Keys of the tile from `key` on that some query of a panel sees.
  std::int64_t visible(std::int64_t panel, std::int64_t key) const {
    const std::int64_t last = std::min(panel + panel_columns(), queries) - 1;
    if (last < panel) return 0;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(counts[last]) - key, 0, kTile);
  }
  bool sees_all(std::int64_t panel, std::int64_t key, std::int64_t rows) const {
    return panel + panel_columns() <= queries && counts[panel] >= static_cast<float>(key + rows);
  }
};

// Rows of scores that are computed for so many visible keys.
HWY_INLINE std::int64_t computed_rows(std::int64_t visible) { return rounded_up(visible, kProductRows); }

// Calls body(row, vector of a panel, place) for a panel of scores, or of what lies as they do.
template <typename Body>
HWY_INLINE void for_each_score(std::int64_t rows, const Body& body) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 2
    for (std::int64_t v = 0; v < kProductVectors; ++v) body(row, v * tile_lanes(), row * kTile + v * tile_lanes());
  }
}

// Writes `instead` where a query does not see a key.
HWY_INLINE void mask_unseen(const SeenKeys& seen, std::int64_t panel, std::int64_t key, std::int64_t rows, float instead,
                            float* scores) {
  const TileFloats d;
  for_each_score(rows, [&](std::int64_t row, std::int64_t column, std::int64_t at) {
    const auto sees = hn::Gt(hn::LoadU(d, seen.counts + panel + column), hn::Set(d, static_cast<float>(key + row)));
    hn::StoreU(hn::IfThenElse(sees, hn::LoadU(d, scores + at), hn::Set(d, instead)), d, scores + at);
  });
}

// For a panel of queries from `query` on and `rows` keys: what dropout multiplies each probability by.
template <typename T>
HWY_INLINE void draw_kept(const AttentionInputs<T>& in, std::int64_t example, std::int64_t head, std::int64_t query,
                          std::int64_t key, std::int64_t rows, float* kept) {
  const auto number = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const AttentionDraws& draws = in.draws;
  const std::uint64_t first =
      ops::attention_dropout_element(draws.first_example + number(example), number(in.g.heads), number(in.g.length),
                                     number(in.g.key_length), number(head), number(query), number(key));
#if HWY_TARGET != HWY_SCALAR
  // Where lengths are multiples of 4, so are the elements of key `key`: each lane's block serves four keys of its query.
  if (in.g.key_length % 4 == 0) {
    const TileFloats d;
    const hn::Rebind<std::uint32_t, TileFloats> words;
    const auto blocks_to_query = hn::Mul(hn::Iota(words, 0), hn::Set(words, static_cast<std::uint32_t>(in.g.key_length / 4)));
    const auto least = hn::Set(words, static_cast<std::uint32_t>(draws.threshold - 1));
    for (std::int64_t column = 0; column < panel_columns(); column += tile_lanes()) {
      for (std::int64_t row = 0; row < rows; row += 4) {
        const std::uint64_t block = (first + number(column * in.g.key_length + row)) / 4;
        const auto low = hn::Set(words, static_cast<std::uint32_t>(block));
        auto c0 = hn::Add(low, blocks_to_query);
        const auto carry = hn::IfThenElseZero(hn::Lt(c0, low), hn::Set(words, 1U));
        auto c1 = hn::Add(hn::Set(words, static_cast<std::uint32_t>(block >> 32U)), carry);
        auto c2 = hn::Set(words, static_cast<std::uint32_t>(draws.counter_high));
        auto c3 = hn::Set(words, static_cast<std::uint32_t>(draws.counter_high >> 32U));
        philox_lanes(words, draws.seed, c0, c1, c2, c3);
        const auto put = [&](std::int64_t i, auto drawn) {
          const auto keeps = hn::RebindMask(d, hn::Gt(drawn, least));
          hn::StoreU(hn::IfThenElseZero(keeps, hn::Set(d, draws.kept)), d, kept + (row + i) * kTile + column);
        };
        put(0, c0);
        put(1, c1);
        put(2, c2);
        put(3, c3);
      }
    }
    return;
  }
#endif
  for (std::int64_t column = 0; column < panel_columns(); ++column) {
    PhiloxBlock block{};
    std::uint64_t drawn = ~std::uint64_t{0};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::uint64_t element = first + number(column * in.g.key_length + row);
      if (element / 4 != drawn) block = philox(draws.seed, drawn = element / 4, draws.counter_high);
      kept[row * kTile + column] = block.word[element % 4] >= draws.threshold ? draws.kept : 0.0F;
    }
  }
}

// Cuts scratch into arrays.
class ScratchCutter {
 public:
  explicit ScratchCutter(float* begin) : next_(begin) {}
  float* cut(std::int64_t floats) {
    float* const piece = next_;
    next_ += floats;
    return piece;
  }

 private:
  float* next_;
};

// A head's columns of a tile of rows, as rows of floats: of queries from position `first` on, and of keys or values from `key`
// on.
template <typename T>
HWY_INLINE void load_queries_of(const AttentionInputs<T>& in, std::int64_t example, std::int64_t first, std::int64_t head,
                                float* to) {
  load_rows(in.queries + (example * in.g.length + first) * in.g.query_columns() + in.g.query_column(head), in.g.query_columns(),
            std::min(kTile, in.g.length - first), in.g.head_size, to, padded_head(in.g.head_size), kTile);
}
template <typename T>
HWY_INLINE void load_keys_of(const AttentionInputs<T>& in, std::int64_t example, std::int64_t key, std::int64_t column,
                             float* to) {
  load_rows(in.keys + (example * in.g.key_length + key) * in.g.key_columns() + column, in.g.key_columns(),
            std::min(kTile, in.g.key_length - key), in.g.head_size, to, padded_head(in.g.head_size), kTile);
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
