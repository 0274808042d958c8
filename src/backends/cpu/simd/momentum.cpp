#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/update.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"
#include "ops/updates/sgd.h"

// momentum_add, momentum_decay and momentum_step, element by element in memory order: any layout, as long as both operands have
// the same.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kGrain = 32;  // a cache line of the narrowest elements

KernelMatch match_pair(const Type& one, const Type& other) {
  if (!is_stored(one.dtype)) return Refuse{to_string(one) + " is not f32, bf16 or f16"};
  if (one != other) return Refuse{to_string(other) + " lies otherwise than " + to_string(one)};
  return Accept{};
}

KernelMatch match_first_two(const KernelQuery& query) { return match_pair(query.inputs[0], query.inputs[1]); }
KernelMatch match_step(const KernelQuery& query) { return match_pair(query.inputs[0], query.inputs[2]); }

// One operand, and optionally another.
template <typename T>
struct Pair {
  simd::Combination<T> arrays;
  std::int64_t count;
  bool stochastic;
  std::uint64_t purpose;
  int threads;

  void combine(float a, float b, const Scalars& scalars, std::uint64_t first_element = 0) const {
    const simd::Rounding rounding{.stochastic = stochastic,
                                  .seed = scalars.seed,
                                  .counter_high = ops::counter_high(purpose, scalars.step),
                                  .first_element = static_cast<std::int64_t>(first_element)};
    for_each_part(count, count < 4096 ? 1 : threads, kGrain,
                  [&](int, Range part) { simd::update_loops<T>().combine(arrays, a, b, rounding, part.begin, part.size()); });
  }
  void keep_first() const {
    if (arrays.out != arrays.one) std::copy_n(arrays.one, count, arrays.out);
  }
};

template <typename T>
Pair<T> pair_of(const KernelArguments& arguments, std::size_t other, bool is_weight) {
  return {.arrays = {.one = elements<T>(arguments.inputs[0]),
                     .other = elements<T>(arguments.inputs[other]),
                     .out = elements<T>(arguments.outputs[0]),
                     .is_weight = is_weight},
          .count = stored_elements(arguments.outputs[0].type),
          .stochastic = ops::sgd_rounds_stochastically(arguments.attributes),
          .purpose = ops::kRoundingPurpose + static_cast<std::uint64_t>(arguments.attributes.integer_or("key", 0)),
          .threads = arguments.threads};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_add_of(const KernelArguments& arguments) {
  return make_bound([of = pair_of<T>(arguments, 1, false), scalars = reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
                     summand = static_cast<std::uint64_t>(arguments.attributes.integer("summand"))] {
    of.combine(1, 1, *scalars, ops::first_rounded_element(scalars->first_example, summand));
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_decay_of(const KernelArguments& arguments) {
  return make_bound([of = pair_of<T>(arguments, 1, false), scalars = reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
                     momentum = static_cast<float>(arguments.attributes.real("momentum")),
                     weight_decay = static_cast<float>(arguments.attributes.real("weight_decay"))] {
    if (scalars->is_first_microbatch != 0) {
      of.combine(momentum, weight_decay, *scalars);
    } else {
      of.keep_first();
    }
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_step_of(const KernelArguments& arguments) {
  return make_bound([of = pair_of<T>(arguments, 2, true), scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data)] {
    if (scalars->skip_update != 0) {
      of.keep_first();
    } else {
      of.combine(1, -static_cast<float>(scalars->learning_rate), *scalars);
    }
  });
}

std::unique_ptr<BoundKernel> bind_add(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_add_of<T>(arguments); });
}

std::unique_ptr<BoundKernel> bind_decay(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_decay_of<T>(arguments); });
}

std::unique_ptr<BoundKernel> bind_step(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_step_of<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_momentum_add{
    .name = "simd_momentum_add", .op = "momentum_add", .match = match_first_two, .bind = bind_add};
constinit const KernelDef simd_momentum_decay{
    .name = "simd_momentum_decay", .op = "momentum_decay", .match = match_first_two, .bind = bind_decay};
constinit const KernelDef simd_momentum_step{
    .name = "simd_momentum_step", .op = "momentum_step", .match = match_step, .bind = bind_step};

}  // namespace snug::backends::cpu
