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

std::int64_t blocks_of(const Geometry& g) { return (g.length + simd::kAttentionTile - 1) / simd::kAttentionTile; }

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

  // `qkv` and `scalars`: numbers of these inputs; lengths come after the scalars where there are some.
  Operands(const KernelArguments& arguments, std::size_t qkv, std::size_t at_scalars)
      : in{.g = Geometry::from(arguments.inputs[qkv].type.shape, arguments.attributes),
           .scale = static_cast<float>(arguments.attributes.real("scale")),
           .qkv = elements<T>(arguments.inputs[qkv]),
           .lengths = arguments.inputs.size() > at_scalars + 1
                          ? reinterpret_cast<const std::int32_t*>(arguments.inputs[at_scalars + 1].data)
                          : nullptr,
           .draws = {}},
        scalars(reinterpret_cast<const Scalars*>(arguments.inputs[at_scalars].data)),
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

// body(thread, block) for all blocks of the given heads, the longest first: with a causal mask these are the last.
template <typename Body>
void for_each_block(const Geometry& g, std::int64_t heads, bool last_first, int threads, const Body& body) {
  const std::int64_t blocks = blocks_of(g);
  for_each_item(g.examples * heads * blocks, threads, [&](int thread, std::int64_t item) {
    const std::int64_t number = item / (g.examples * heads);
    const std::int64_t head = item % (g.examples * heads);
    body(thread, AttentionBlock{.example = head / heads,
                                .head = head % heads,
                                .first = (last_first ? blocks - 1 - number : number) * simd::kAttentionTile});
  });
}

// attention(qkv, scalars, lengths?) and attention_probabilities of the same
KernelMatch match_forward(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0})) return Refuse{*reason};
  const Geometry g = Geometry::from(query.inputs[0].shape, query.attributes);
  return Accept{.workspace = size_of_scratch(simd::attention_scratch(g.head_size), query.threads)};
}

std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, 0, 1);
    return make_bound([operands, y = elements<T>(arguments.outputs[0]), log_sum_exp = floats(arguments.outputs[1]),
                       scratch = scratch_in(arguments.workspace.data(), simd::attention_scratch(operands.in.g.head_size)),
                       threads = arguments.threads] {
      const simd::AttentionInputs<T> in = operands.now();
      for_each_block(in.g, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
        simd::attention_loops<T>().forward(in, block, y, log_sum_exp, scratch.of(thread));
      });
    });
  });
}

std::unique_ptr<BoundKernel> bind_probabilities(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, 0, 1);
    return make_bound([operands, to = elements<T>(arguments.outputs[0]),
                       scratch = scratch_in(arguments.workspace.data(), simd::attention_scratch(operands.in.g.head_size)),
                       threads = arguments.threads] {
      const simd::AttentionInputs<T> in = operands.now();
      for_each_block(in.g, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
        simd::attention_loops<T>().probabilities(in, block, to, scratch.of(thread));
      });
    });
  });
}

// attention_grad(dy, qkv, y, log_sum_exp, scalars, lengths?) and attention_grad_probabilities(dy, qkv, probabilities, scalars,
// lengths?)
template <bool FromProbabilities>
std::optional<std::string> objection_to_gradient(const KernelQuery& query) {
  return FromProbabilities ? objection_to_rows(query, {1, 0, 2}) : objection_to_rows(query, {1, 0, 2}, {3});
}

std::int64_t floats_of_whole(const Geometry& g) {
  return simd::attention_gradient_scratch(g.head_size) + simd::attention_gradient_sums(g);
}

template <bool FromProbabilities>
KernelMatch match_whole(const KernelQuery& query) {
  if (auto reason = objection_to_gradient<FromProbabilities>(query)) return Refuse{*reason};
  const Geometry g = Geometry::from(query.inputs[1].shape, query.attributes);
  // The other kernel, which takes 7 products instead of 5, is faster where it gives work to more threads.
  if (7 * g.examples * g.kv_heads < std::int64_t{5} * query.threads)
    return Refuse{"there are too few heads of keys for so many threads"};
  return Accept{.workspace = size_of_scratch(floats_of_whole(g), query.threads)};
}

template <bool FromProbabilities>
KernelMatch match_blocks(const KernelQuery& query) {
  if (auto reason = objection_to_gradient<FromProbabilities>(query)) return Refuse{*reason};
  const Geometry g = Geometry::from(query.inputs[1].shape, query.attributes);
  return Accept{.workspace = size_of_scratch(simd::attention_gradient_scratch(g.head_size), query.threads), .slowdown = 1.4};
}

template <bool FromProbabilities, typename T>
simd::AttentionGradient<T> gradient_of(const KernelArguments& arguments) {
  return {.dy = elements<T>(arguments.inputs[0]),
          .y = FromProbabilities ? nullptr : elements<T>(arguments.inputs[2]),
          .log_sum_exp = FromProbabilities ? nullptr : floats(arguments.inputs[3]),
          .probabilities = FromProbabilities ? elements<T>(arguments.inputs[2]) : nullptr,
          .dqkv = elements<T>(arguments.outputs[0])};
}

template <bool FromProbabilities>
std::unique_ptr<BoundKernel> bind_whole(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[1].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, 1, FromProbabilities ? 3 : 4);
    return make_bound([operands, gradient = gradient_of<FromProbabilities, T>(arguments),
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

template <bool FromProbabilities>
std::unique_ptr<BoundKernel> bind_blocks(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[1].type.dtype, [&]<typename T>(T /*tag*/) {
    const Operands<T> operands(arguments, 1, FromProbabilities ? 3 : 4);
    return make_bound(
        [operands, gradient = gradient_of<FromProbabilities, T>(arguments),
         scratch = scratch_in(arguments.workspace.data(), simd::attention_gradient_scratch(operands.in.g.head_size)),
         threads = arguments.threads] {
          const simd::AttentionInputs<T> in = operands.now();
          for_each_block(in.g, in.g.heads, true, threads, [&](int thread, AttentionBlock block) {
            simd::attention_gradient_loops<T>().queries(in, gradient, block, scratch.of(thread));
          });
          for_each_block(in.g, in.g.kv_heads, false, threads, [&](int thread, AttentionBlock block) {
            simd::attention_gradient_loops<T>().keys(in, gradient, block, scratch.of(thread));
          });
        });
  });
}

}  // namespace

constinit const KernelDef simd_attention{
    .name = "simd_attention", .op = "attention", .match = match_forward, .bind = bind_forward};
constinit const KernelDef simd_attention_probabilities{
    .name = "simd_attention_probabilities", .op = "attention_probabilities", .match = match_forward, .bind = bind_probabilities};
constinit const KernelDef simd_attention_grad{
    .name = "simd_attention_grad", .op = "attention_grad", .match = match_whole<false>, .bind = bind_whole<false>};
constinit const KernelDef simd_attention_grad_blocks{
    .name = "simd_attention_grad_blocks", .op = "attention_grad", .match = match_blocks<false>, .bind = bind_blocks<false>};
constinit const KernelDef simd_attention_grad_probabilities{.name = "simd_attention_grad_probabilities",
                                                            .op = "attention_grad_probabilities",
                                                            .match = match_whole<true>,
                                                            .bind = bind_whole<true>};
constinit const KernelDef simd_attention_grad_probabilities_blocks{.name = "simd_attention_grad_probabilities_blocks",
                                                                   .op = "attention_grad_probabilities",
                                                                   .match = match_blocks<true>,
                                                                   .bind = bind_blocks<true>};

}  // namespace snug::backends::cpu
