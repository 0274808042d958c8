#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "ir/scalars.h"

// momentum_decay and momentum_step, element by element in memory order: any layout will do, so long as both operands have the
// same. Plain loops: the compiler vectorises them, and memory is what they wait for.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kGrain = 16;  // a cache line of floats

KernelMatch match_pair(const Type& one, const Type& other) {
  if (one.dtype != DType::f32 || one.storage.kind != Storage::Kind::dense) return Refuse{to_string(one) + " is not dense f32"};
  if (one != other) return Refuse{to_string(other) + " lies otherwise than " + to_string(one)};
  return Accept{};
}

KernelMatch match_decay(const KernelQuery& query) { return match_pair(query.inputs[0], query.inputs[1]); }
KernelMatch match_step(const KernelQuery& query) { return match_pair(query.inputs[0], query.inputs[2]); }

// out = a first + b second, or first alone where that is all that is asked for.
struct Combination {
  const float *first, *second;
  float* out;
  std::int64_t count;
  int threads;

  void run(float a, float b) const {
    for_each_part(count, count < 4096 ? 1 : threads, kGrain, [&](int, Range part) {
      for (std::int64_t i = part.begin; i < part.end; ++i) out[i] = a * first[i] + b * second[i];
    });
  }
  void keep_first() const {
    if (out != first) std::memcpy(out, first, static_cast<std::size_t>(count) * sizeof(float));
  }
};

Combination combination(const KernelArguments& arguments, std::size_t second) {
  return {.first = reinterpret_cast<const float*>(arguments.inputs[0].data),
          .second = reinterpret_cast<const float*>(arguments.inputs[second].data),
          .out = reinterpret_cast<float*>(arguments.outputs[0].data),
          .count = arguments.outputs[0].type.bytes().count() / 4,
          .threads = arguments.threads};
}

std::unique_ptr<BoundKernel> bind_decay(const KernelArguments& arguments) {
  return make_bound([of = combination(arguments, 1), scalars = reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
                     momentum = static_cast<float>(arguments.attributes.real("momentum")),
                     weight_decay = static_cast<float>(arguments.attributes.real("weight_decay"))] {
    if (scalars->first_example == 0) {
      of.run(momentum, weight_decay);
    } else {
      of.keep_first();
    }
  });
}

std::unique_ptr<BoundKernel> bind_step(const KernelArguments& arguments) {
  return make_bound([of = combination(arguments, 2), scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data)] {
    if (scalars->skip_update != 0) {
      of.keep_first();
    } else {
      of.run(1, -static_cast<float>(scalars->learning_rate));
    }
  });
}

}  // namespace

constinit const KernelDef simd_momentum_decay{
    .name = "simd_momentum_decay", .op = "momentum_decay", .match = match_decay, .bind = bind_decay};
constinit const KernelDef simd_momentum_step{
    .name = "simd_momentum_step", .op = "momentum_step", .match = match_step, .bind = bind_step};

}  // namespace snug::backends::cpu
