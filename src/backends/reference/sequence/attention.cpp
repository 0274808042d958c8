#include "ops/sequence/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/sequence/rows.h"
#include "ops/random_draws.h"

// Scores are computed again wherever they are needed, as there is no room to keep a row of them.

namespace snug::backends::reference {

namespace {

using Geometry = ops::AttentionGeometry;

// A query or key head: of example n, at position t, head h.
struct Place {
  std::int64_t n, t, h;
};

// The numbers of the inputs with queries, with keys and values (the same where these are not apart), and of the scalars, which
// the lengths follow where there are some.
struct Operands {
  std::size_t queries, keys, scalars;

  Geometry geometry(const Call& call) const {
    return queries == keys ? Geometry::from(call.input_shape(keys), call.attributes)
                           : Geometry::from_apart(call.input_shape(queries), call.input_shape(keys), call.attributes);
  }
};

constexpr Operands kForwardOperands{.queries = 0, .keys = 0, .scalars = 1};
constexpr Operands kGradOperands{.queries = 1, .keys = 1, .scalars = 4};
constexpr Operands kGradProbabilitiesOperands{.queries = 1, .keys = 1, .scalars = 3};
constexpr Operands kCrossOperands{.queries = 0, .keys = 1, .scalars = 2};
constexpr Operands kCrossGradOperands{.queries = 1, .keys = 2, .scalars = 5};

// What all kernels read.
template <typename T>
class Attention {
 public:
  Attention(const Call& call, const Operands& operands)
      : g(operands.geometry(call)),
        queries_(call.input<T>(operands.queries)),
        keys_(call.input<T>(operands.keys)),
        lengths_(call.inputs.size() > operands.scalars + 1
                     ? reinterpret_cast<const std::int32_t*>(call.inputs[operands.scalars + 1].data)
                     : nullptr),
        scalars_(call.scalars(operands.scalars)),
        scale_(call.attributes.real("scale")),
        dropout_(call.attributes.real("dropout")),
        key_(static_cast<std::uint64_t>(call.attributes.integer("key"))) {}

  const Geometry g;

  const T* query(Place q) const { return &queries_(q.n * g.length + q.t, g.query_column(q.h)); }
  // Of head q.h, the key and value at position t.
  const T* key(Place q, std::int64_t t) const {
    return &keys_(q.n * g.key_length + t, g.key_column(q.h / g.heads_per_kv_head()));
  }
  const T* value(Place q, std::int64_t t) const {
    return &keys_(q.n * g.key_length + t, g.value_column(q.h / g.heads_per_kv_head()));
  }

  double scale() const { return scale_; }
  double score(Place q, std::int64_t key_position) const { return scale_ * dot(query(q), key(q, key_position), g.head_size); }
  std::int64_t keys_seen(Place q) const {
    return Geometry::keys_seen(q.t, g.key_length, lengths_ == nullptr ? g.key_length : lengths_[q.n], g.causal);
  }
  // By what dropout multiplies the probability.
  double kept(Place q, std::int64_t key_position) const {
    if (dropout_ == 0) return 1;
    const auto number = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    const std::uint64_t element =
        ops::attention_dropout_element(scalars_.first_example + number(q.n), number(g.heads), number(g.length),
                                       number(g.key_length), number(q.h), number(q.t), number(key_position));
    const std::uint32_t word = ops::dropout_word(scalars_.seed, scalars_.step, key_, element);
    return ops::dropout_keeps(word, dropout_) ? 1 / (1 - dropout_) : 0;
  }

  double log_sum_exp(Place q) const {
    const std::int64_t seen = keys_seen(q);
    if (seen == 0) return double{ops::kNothingSeen};
    double largest = score(q, 0);
    for (std::int64_t j = 1; j < seen; ++j) largest = std::max(largest, score(q, j));
    double sum = 0;
    for (std::int64_t j = 0; j < seen; ++j) sum += std::exp(score(q, j) - largest);
    return largest + std::log(sum);
  }

  // body(place of a query head), in parallel.
  template <typename Body>
  void for_each_query(const Call& call, const Body& body) const {
    parallel_for(call, g.rows() * g.heads, [&](std::int64_t i) {
      const std::int64_t row = i / g.heads;
      body(Place{.n = row / g.length, .t = row % g.length, .h = i % g.heads});
    });
  }

 private:
  View<const T> queries_, keys_;
  const std::int32_t* lengths_;
  Scalars scalars_;
  double scale_, dropout_;
  std::uint64_t key_;
};

template <const Operands& O, typename T>
void run_attention(const Call& call) {
  const Attention<T> attention(call, O);
  const Geometry& g = attention.g;
  const View<T> y = call.output<T>(0);
  const View<T> log_sum_exp = call.output<T>(1);
  attention.for_each_query(call, [&](Place q) {
    const std::int64_t row = q.n * g.length + q.t;
    const std::int64_t seen = attention.keys_seen(q);
    const double log_sum = attention.log_sum_exp(q);
    for (std::int64_t first = 0; first < g.head_size; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, g.head_size - first);
      double sums[kColumnBlock] = {};
      for (std::int64_t j = 0; j < seen; ++j) {
        const double kept = attention.kept(q, j);
        if (kept == 0) continue;
        const double probability = kept * std::exp(attention.score(q, j) - log_sum);
        const T* value = attention.value(q, j) + first;
        for (std::int64_t c = 0; c < count; ++c) sums[c] += probability * value[c];
      }
      for (std::int64_t c = 0; c < count; ++c) y(row, g.query_column(q.h) + first + c) = static_cast<T>(sums[c]);
    }
    log_sum_exp(row, q.h) = static_cast<T>(log_sum);
  });
}

template <typename T>
void run_probabilities(const Call& call) {
  const Attention<T> attention(call, kForwardOperands);
  const Geometry& g = attention.g;
  const View<T> probabilities = call.output<T>(0);
  attention.for_each_query(call, [&](Place q) {
    const std::int64_t seen = attention.keys_seen(q);
    const double log_sum = attention.log_sum_exp(q);
    for (std::int64_t j = 0; j < g.length; ++j) {
      const double probability = j < seen ? std::exp(attention.score(q, j) - log_sum) : 0;
      probabilities(q.n * g.length + q.t, q.h * g.length + j) = static_cast<T>(probability);
    }
  });
}

// Of one pair of a query and a key: the gradient of its score times `scale`, and the probability after dropout.
struct PairGradient {
  double score, dropped;
};

// The gradients, where pair(query, key) is a PairGradient: of the queries into the first output, of keys and values into the
// last, which is the same where they are not apart. Each pass has the threads write different elements.
template <typename T, typename Pair>
void write_query_gradients(const Call& call, const Attention<T>& attention, const Pair& pair) {
  const Geometry& g = attention.g;
  const View<T> dq = call.output<T>(0);
  attention.for_each_query(call, [&](Place q) {
    const std::int64_t seen = attention.keys_seen(q);
    // Of the first columns the pair may still need what is held there.
    const auto at_query = pair.of_query(q);
    for (std::int64_t first = 0; first < g.head_size; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, g.head_size - first);
      double sums[kColumnBlock] = {};
      for (std::int64_t j = 0; j < seen; ++j) {
        const double score = pair(q, j, at_query).score;
        const T* key = attention.key(q, j) + first;
        for (std::int64_t c = 0; c < count; ++c) sums[c] += score * key[c];
      }
      for (std::int64_t c = 0; c < count; ++c)
        dq(q.n * g.length + q.t, g.query_column(q.h) + first + c) = static_cast<T>(sums[c]);
    }
  });
}

template <typename T, typename Pair>
void write_key_gradients(const Call& call, const Attention<T>& attention, const View<const T>& dy, const Pair& pair) {
  const Geometry& g = attention.g;
  const View<T> dkv = call.output<T>(g.apart ? 1 : 0);
  parallel_for(call, g.key_rows() * g.kv_heads, [&](std::int64_t i) {
    const std::int64_t row = i / g.kv_heads, kv_head = i % g.kv_heads;
    const std::int64_t n = row / g.key_length, j = row % g.key_length;
    for (std::int64_t first = 0; first < g.head_size; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, g.head_size - first);
      double for_key[kColumnBlock] = {};
      double for_value[kColumnBlock] = {};
      for (std::int64_t head = 0; head < g.heads_per_kv_head(); ++head) {
        for (std::int64_t t = g.causal ? j : 0; t < g.length; ++t) {
          const Place q{.n = n, .t = t, .h = kv_head * g.heads_per_kv_head() + head};
          if (j >= attention.keys_seen(q)) continue;
          const PairGradient gradient = pair(q, j, pair.of_query(q));
          const T* query = attention.query(q) + first;
          const T* dy_of_query = &dy(n * g.length + t, g.query_column(q.h) + first);
          for (std::int64_t c = 0; c < count; ++c) {
            for_key[c] += gradient.score * query[c];
            for_value[c] += gradient.dropped * dy_of_query[c];
          }
        }
      }
      for (std::int64_t c = 0; c < count; ++c) {
        dkv(row, g.key_column(kv_head) + first + c) = static_cast<T>(for_key[c]);
        dkv(row, g.value_column(kv_head) + first + c) = static_cast<T>(for_value[c]);
      }
    }
  });
}

// With dp = dy.v * kept: the gradient of a score is p * (dp - sum over the keys of p * dp), and that sum is dy.y.
template <typename T>
struct FromLogSumExp {
  const Attention<T>& attention;
  View<const T> dy, y, log_sum_exp;

  const T* gradient_of(Place q) const { return &dy(q.n * attention.g.length + q.t, attention.g.query_column(q.h)); }
  double of_query(Place q) const {
    const T* result = &y(q.n * attention.g.length + q.t, attention.g.query_column(q.h));
    return dot(gradient_of(q), result, attention.g.head_size);
  }
  PairGradient operator()(Place q, std::int64_t j, double sum) const {
    const double probability = std::exp(attention.score(q, j) - log_sum_exp(q.n * attention.g.length + q.t, q.h));
    const double kept = attention.kept(q, j);
    const double of_probability = kept * dot(gradient_of(q), attention.value(q, j), attention.g.head_size);
    return {attention.scale() * probability * (of_probability - sum), kept * probability};
  }
};

// y and log_sum_exp come before the scalars.
template <const Operands& O, typename T>
void run_grad(const Call& call) {
  const Attention<T> attention(call, O);
  const FromLogSumExp<T> pair{attention, call.input<T>(0), call.input<T>(O.scalars - 2), call.input<T>(O.scalars - 1)};
  write_key_gradients(call, attention, pair.dy, pair);
  write_query_gradients(call, attention, pair);
}

// The sum over the keys is held where the query's gradient will be, until that is written.
template <typename T>
struct FromProbabilities {
  const Attention<T>& attention;
  View<const T> dy, probabilities;
  View<T> dqkv;

  T* stretch_of(Place q) const { return &dqkv(q.n * attention.g.length + q.t, attention.g.query_column(q.h)); }
  const T* gradient_of(Place q) const { return &dy(q.n * attention.g.length + q.t, attention.g.query_column(q.h)); }
  double of_query(Place q) const { return held(stretch_of(q), attention.g.head_size); }
  double probability(Place q, std::int64_t j) const {
    return probabilities(q.n * attention.g.length + q.t, q.h * attention.g.length + j);
  }
  double of_probability(Place q, std::int64_t j) const {
    return attention.kept(q, j) * dot(gradient_of(q), attention.value(q, j), attention.g.head_size);
  }
  PairGradient operator()(Place q, std::int64_t j, double sum) const {
    return {attention.scale() * probability(q, j) * (of_probability(q, j) - sum), attention.kept(q, j) * probability(q, j)};
  }
};

template <typename T>
void run_grad_probabilities(const Call& call) {
  const Attention<T> attention(call, kGradProbabilitiesOperands);
  const FromProbabilities<T> pair{attention, call.input<T>(0), call.input<T>(2), call.output<T>(0)};
  attention.for_each_query(call, [&](Place q) {
    double sum = 0;
    for (std::int64_t j = 0; j < attention.keys_seen(q); ++j) sum += pair.probability(q, j) * pair.of_probability(q, j);
    hold(pair.stretch_of(q), attention.g.head_size, sum);
  });
  write_key_gradients(call, attention, pair.dy, pair);
  write_query_gradients(call, attention, pair);
}

constexpr Signature kCross{.inputs = {Element::real, Element::real, Element::scalars, Element::index},
                           .outputs = {Element::real, Element::statistic}};
constexpr Signature kCrossGrad{
    .inputs = {Element::real, Element::real, Element::real, Element::real, Element::statistic, Element::scalars, Element::index},
    .outputs = {Element::real, Element::real}};
constexpr Signature kForward{.inputs = {Element::real, Element::scalars, Element::index},
                             .outputs = {Element::real, Element::statistic}};
constexpr Signature kGrad{
    .inputs = {Element::real, Element::real, Element::real, Element::statistic, Element::scalars, Element::index}};
constexpr Signature kGradProbabilities{.inputs = {Element::real, Element::real, Element::real, Element::scalars, Element::index}};

}  // namespace

constinit const KernelDef attention =
    define<[]<typename T>() { return run_attention<kForwardOperands, T>; }, kForward>("reference_attention");
constinit const KernelDef attention_grad =
    define<[]<typename T>() { return run_grad<kGradOperands, T>; }, kGrad>("reference_attention_grad");
constinit const KernelDef cross_attention =
    define<[]<typename T>() { return run_attention<kCrossOperands, T>; }, kCross>("reference_cross_attention");
constinit const KernelDef cross_attention_grad =
    define<[]<typename T>() { return run_grad<kCrossGradOperands, T>; }, kCrossGrad>("reference_cross_attention_grad");
constinit const KernelDef attention_probabilities =
    define<[]<typename T>() { return run_probabilities<T>; }, kForward>("reference_attention_probabilities");
constinit const KernelDef attention_grad_probabilities =
    define<[]<typename T>() { return run_grad_probabilities<T>; }, kGradProbabilities>("reference_attention_grad_probabilities");

}  // namespace snug::backends::reference
