#include "ops/updates/adamw.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/update.h"
#include "ir/scalars.h"
#include "ops/updates/sgd.h"

// adamw(w, g, scalars, m, v, updates, gradient_norm?), element by element in memory order: any layout, as long as all operands
// have the same.

namespace snug::backends::cpu {

namespace {

// A cache line of elements: threads that write neighboring parts do not share one.
constexpr std::int64_t kGrain = 32;

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return Refuse{to_string(weight) + " is not f32, bf16 or f16"};
  if (ops::sgd_rounds_stochastically(query.attributes)) return Refuse{"it rounds to nearest"};
  for (const std::size_t i : {1, 3, 4}) {
    if (query.inputs[i] != weight) return Refuse{to_string(query.inputs[i]) + " lies otherwise than the weight"};
  }
  return Accept{};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  const simd::AdamwArrays<T> arrays{.weight = elements<T>(arguments.inputs[0]),
                                    .gradient = elements<T>(arguments.inputs[1]),
                                    .first = elements<T>(arguments.inputs[3]),
                                    .second = elements<T>(arguments.inputs[4]),
                                    .new_weight = elements<T>(arguments.outputs[0]),
                                    .new_gradient = elements<T>(arguments.outputs[1]),
                                    .new_first = elements<T>(arguments.outputs[2]),
                                    .new_second = elements<T>(arguments.outputs[3])};
  const auto* norm = arguments.inputs.size() > 6 ? reinterpret_cast<const GradientNorm*>(arguments.inputs[6].data) : nullptr;
  return make_bound([attributes = arguments.attributes, arrays, norm,
                     scalars = reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
                     updates = reinterpret_cast<const double*>(arguments.inputs[5].data),
                     count = stored_elements(arguments.outputs[0].type), threads = arguments.threads] {
    const double factor = norm == nullptr ? 1 : norm->factor;
    if (scalars->skip_update != 0 || !std::isfinite(factor)) {
      std::fill_n(arrays.new_gradient, count, T{});
      if (arrays.new_weight != arrays.weight) std::copy_n(arrays.weight, count, arrays.new_weight);
      if (arrays.new_first != arrays.first) std::copy_n(arrays.first, count, arrays.new_first);
      if (arrays.new_second != arrays.second) std::copy_n(arrays.second, count, arrays.new_second);
      return;
    }
    const ops::AdamwStep step(attributes, *scalars, *updates, factor);
    const simd::AdamwRule now{.first_decay = static_cast<float>(step.first_decay),
                              .second_decay = static_cast<float>(step.second_decay),
                              .epsilon = static_cast<float>(step.epsilon),
                              .keeps = static_cast<float>(step.keeps),
                              .rate = static_cast<float>(step.rate),
                              .second_bias = static_cast<float>(step.second_bias),
                              .gradient_scale = static_cast<float>(step.gradient_scale)};
    const int parts = count < 4096 ? 1 : threads;  // small tensors are not worth another thread
    for_each_part(count, parts, kGrain,
                  [&](int, Range part) { simd::update_loops<T>().adamw(now, arrays, part.begin, part.size()); });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_adamw{.name = "simd_adamw", .op = "adamw", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
