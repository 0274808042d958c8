#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/attention_loops.h"
#include "backends/cpu/sequence/rows.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"

// Attention on all threads, which take blocks of queries or heads of keys as they are free. Each block is computed alone, and
// what is summed over several is summed in their order, so the bits are the same on any number of threads.

namespace snug::backends::cpu {

namespace {

using Geometry = ops::AttentionGeometry;
using simd::AttentionBlock;

// The numbers of the inputs with queries, with keys and values (the same where these are not apart), and of the scalars, which
// the lengths follow where there are some. Backward reads y and log_sum_exp from the two inputs before the scalars, or
// probabilities from the one before.
struct Inputs {
  std::size_t queries, keys, scalars;
  bool probabilities = false;

  Geometry geometry(const Shape& with_queries, const Shape& with_keys, const Attributes& attributes) const {
    return queries == keys ? Geometry::from(with_keys, attributes) : Geometry::from_apart(with_queries, with_keys, attributes);
  }
  Geometry geometry(const KernelQuery& query) const {
    return geometry(query.inputs[queries].shape, query.inputs[keys].shape, query.attributes);
  }
};
constexpr Inputs kForward{.queries = 0, .keys = 0, .scalars = 1};
constexpr Inputs kGrad{.queries = 1, .keys = 1, .scalars = 4};
constexpr Inputs kGradProbabilities{.queries = 1, .keys = 1, .scalars = 3, .probabilities = true};
constexpr Inputs kCrossForward{.queries = 0, .keys = 1, .scalars = 2};
constexpr Inputs kCrossGrad{.queries = 1, .keys = 2, .scalars = 5};

// The scratch of each thread.
struct ThreadScratch {
  float* begin;
  std::int64_t step;

  float* of(int thread) const { return begin + thread * step; }
};

std::int64_t floats_of_thread(std::int64_t floats) { return (floats + 15) / 16 * 16; }
Bytes size_of_scratch(std::int64_t floats, int threads) { return Bytes(std::int64_t{4} * threads * floats_of_thread(floats)); }
ThreadScratch scratch_in(std::byte* begin, std::int64_t floats) {
  return {.begin = reinterpret_cast<float*>(begin), .step = floats_of_thread(floats)};
}

// What a kernel reads, but for what changes between runs.
template <typename T>
struct Operands {
  simd::AttentionInputs<T> in;
  const Scalars* scalars;
  double dropout;
  std::uint64_t key;

  Operands(const KernelArguments& arguments, const Inputs& numbers)
      : in{.g = numbers.geometry(arguments.inputs[numbers.queries].type.shape, arguments.inputs[numbers.keys].type.shape,
                                 arguments.attributes),
           .scale = static_cast<float>(arguments.attributes.real("scale")),
           .queries = elements<T>(arguments.inputs[numbers.queries]),
           .keys = elements<T>(arguments.inputs[numbers.keys]),
           .lengths = arguments.inputs.size() > numbers.scalars + 1
                          ? reinterpret_cast<const std::int32_t*>(arguments.inputs[numbers.scalars + 1].data)
                          : nullptr,
           .draws = {}},
        scalars(reinterpret_cast<const Scalars*>(arguments.inputs[numbers.scalars].data)),
        dropout(arguments.attributes.real("dropout")),
        key(static_cast<std::uint64_t>(arguments.attributes.integer("key"))) {}

  simd::AttentionInputs<T> now() const {
    simd::AttentionInputs<T> inputs = in;
    inputs.draws = {.seed = scalars->seed,
                    .counter_high = ops::counter_high(ops::kDropoutPurpose + key, scalars->step),
                    .first_example = scalars->first_example,
                    // A word w is kept when w / 2^32 >= dropout. Both sides are exact as doubles, so this is equivalent.
                    .threshold = static_cast<std::uint64_t>(std::ceil(dropout * 4294967296.0)),
                    .kept = static_cast<float>(1 / (1 - dropout))};
    return inputs;
  }
};

// body(thread, block) for all blocks of so many rows of each example and of the given heads, the longest first: with a causal
// mask these are the last.
template <typename Body>
void for_each_block(const Geometry& g, std::int64_t rows, std::int64_t heads, bool last_first, int threads, const Body& body) {
  const std::int64_t blocks = (rows + simd::kAttentionTile - 1) / simd::kAttentionTile;
  for_each_item(g.examples * heads * blocks, threads, [&](int thread, std::int64_t item) {
    const std::int64_t number = item / (g.examples * heads);
    const std::int64_t head = item % (g.examples * heads);
    body(thread, AttentionBlock{.example = head / heads,
                                .head = head % heads,
                                .first = (last_first ? blocks - 1 - number : number) * simd::kAttentionTile});
  });
}

// Of forward's inputs, or backward's.
template <const Inputs& I>
std::optional<std::string> objection(const KernelQuery& query) {
  if (&I == &kForward || &I == &kCrossForward) return objection_to_rows(query, {I.queries, I.keys});
  if (I.probabilities) return objection_to_rows(query, {I.queries, I.keys, 0, I.scalars - 1});
  return objection_to_rows(query, {I.queries, I.keys, 0, I.scalars - 2}, {I.scalars - 1});
}

template <const Inputs& I>
KernelMatch match_forward(const KernelQuery& query) {
  if (auto reason = objection<I>(query)) return Refuse{*reason};
  return Accept{.workspace = size_of_scratch(simd::attention_scratch(I.geometry(query).head_size), query.threads)};
}

template <const Inputs& I>
std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, I);
    return make_bound([operands, y = elements<T>(arguments.outputs[0]), log_sum_exp = floats(arguments.outputs[1]),
                       scratch = scratch_in(arguments.workspace.data(), simd::attention_scratch(operands.in.g.head_size)),
                       threads = arguments.threads] {
      const simd::AttentionInputs<T> in = operands.now();
      for_each_block(in.g, in.g.length, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
        simd::attention_loops<T>().forward(in, block, y, log_sum_exp, scratch.of(thread));
      });
    });
  });
}

std::unique_ptr<BoundKernel> bind_probabilities(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, kForward);
    return make_bound([operands, to = elements<T>(arguments.outputs[0]),
                       scratch = scratch_in(arguments.workspace.data(), simd::attention_scratch(operands.in.g.head_size)),
                       threads = arguments.threads] {
      const simd::AttentionInputs<T> in = operands.now();
      for_each_block(in.g, in.g.length, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
        simd::attention_loops<T>().probabilities(in, block, to, scratch.of(thread));
      });
    });
  });
}

std::int64_t floats_of_whole(const Geometry& g) {
  return simd::attention_gradient_scratch(g.head_size) + simd::attention_gradient_sums(g);
}

template <const Inputs& I>
KernelMatch match_whole(const KernelQuery& query) {
  if (auto reason = objection<I>(query)) return Refuse{*reason};
  const Geometry g = I.geometry(query);
  // The other kernel, which takes 7 products instead of 5, is faster where it gives work to more threads.
  if (7 * g.examples * g.kv_heads < std::int64_t{5} * query.threads)
    return Refuse{"there are too few heads of keys for so many threads"};
  return Accept{.workspace = size_of_scratch(floats_of_whole(g), query.threads)};
}

template <const Inputs& I>
KernelMatch match_blocks(const KernelQuery& query) {
  if (auto reason = objection<I>(query)) return Refuse{*reason};
  const Geometry g = I.geometry(query);
  return Accept{.workspace = size_of_scratch(simd::attention_gradient_scratch(g.head_size), query.threads), .slowdown = 1.4};
}

template <const Inputs& I, typename T>
simd::AttentionGradient<T> gradient_of(const KernelArguments& arguments) {
  return {.dy = elements<T>(arguments.inputs[0]),
          .y = I.probabilities ? nullptr : elements<T>(arguments.inputs[I.scalars - 2]),
          .log_sum_exp = I.probabilities ? nullptr : floats(arguments.inputs[I.scalars - 1]),
          .probabilities = I.probabilities ? elements<T>(arguments.inputs[I.scalars - 1]) : nullptr,
          .dqueries = elements<T>(arguments.outputs.front()),
          .dkeys = elements<T>(arguments.outputs.back())};
}

template <const Inputs& I>
std::unique_ptr<BoundKernel> bind_whole(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[1].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, I);
    return make_bound([operands, gradient = gradient_of<I, T>(arguments),
                       scratch = scratch_in(arguments.workspace.data(), floats_of_whole(operands.in.g)),
                       threads = arguments.threads] {
      const simd::AttentionInputs<T> in = operands.now();
      const std::int64_t sums = simd::attention_gradient_sums(in.g);
      for_each_item(in.g.examples * in.g.kv_heads, threads, [&](int thread, std::int64_t item) {
        float* const own = scratch.of(thread);
        simd::attention_gradient_loops<T>().whole(in, gradient, item / in.g.kv_heads, item % in.g.kv_heads, own, own + sums);
      });
    });
  });
}

template <const Inputs& I>
std::unique_ptr<BoundKernel> bind_blocks(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[1].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, I);
    return make_bound(
        [operands, gradient = gradient_of<I, T>(arguments),
         scratch = scratch_in(arguments.workspace.data(), simd::attention_gradient_scratch(operands.in.g.head_size)),
         threads = arguments.threads] {
          const simd::AttentionInputs<T> in = operands.now();
          for_each_block(in.g, in.g.length, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
            simd::attention_gradient_loops<T>().queries(in, gradient, block, scratch.of(thread));
          });
          for_each_block(in.g, in.g.key_length, in.g.kv_heads, false, threads, [&](int thread, AttentionBlock block) {
            simd::attention_gradient_loops<T>().keys(in, gradient, block, scratch.of(thread));
          });
        });
  });
}

template <const Inputs& I>
constexpr KernelDef define_whole(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .match = match_whole<I>, .bind = bind_whole<I>};
}
template <const Inputs& I>
constexpr KernelDef define_blocks(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .match = match_blocks<I>, .bind = bind_blocks<I>};
}

}  // namespace

constinit const KernelDef simd_attention{
    .name = "simd_attention", .op = "attention", .match = match_forward<kForward>, .bind = bind_forward<kForward>};
constinit const KernelDef simd_attention_probabilities{.name = "simd_attention_probabilities",
                                                       .op = "attention_probabilities",
                                                       .match = match_forward<kForward>,
                                                       .bind = bind_probabilities};
constinit const KernelDef simd_attention_grad = define_whole<kGrad>("simd_attention_grad", "attention_grad");
constinit const KernelDef simd_attention_grad_blocks = define_blocks<kGrad>("simd_attention_grad_blocks", "attention_grad");
constinit const KernelDef simd_attention_grad_probabilities =
    define_whole<kGradProbabilities>("simd_attention_grad_probabilities", "attention_grad_probabilities");
constinit const KernelDef simd_attention_grad_probabilities_blocks =
    define_blocks<kGradProbabilities>("simd_attention_grad_probabilities_blocks", "attention_grad_probabilities");
constinit const KernelDef simd_cross_attention{.name = "simd_cross_attention",
                                               .op = "cross_attention",
                                               .match = match_forward<kCrossForward>,
                                               .bind = bind_forward<kCrossForward>};
constinit const KernelDef simd_cross_attention_grad =
    define_whole<kCrossGrad>("simd_cross_attention_grad", "cross_attention_grad");
constinit const KernelDef simd_cross_attention_grad_blocks =
    define_blocks<kCrossGrad>("simd_cross_attention_grad_blocks", "cross_attention_grad");

}  // namespace snug::backends::cpu
