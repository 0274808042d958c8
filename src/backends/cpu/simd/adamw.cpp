#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/adamw_rule.h"
#include "ops/common.h"

// adamw(w, g, scalars, m, v, updates, gradient_norm?), element by element in memory order: any layout, as long as all operands
// have the same.

namespace snug::backends::cpu {

namespace {

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return Refuse{to_string(weight) + " is not f32, bf16 or f16"};
  if (query.inputs[1] != weight) return Refuse{to_string(query.inputs[1]) + " lies otherwise than the weight"};
  for (const std::size_t i : {3, 4}) {
    if (query.inputs[i] != ops::stored_as(weight, query.inputs[i].dtype))
      return Refuse{to_string(query.inputs[i]) + " lies otherwise than the weight"};
  }
  return Accept{};
}

template <typename T, typename M>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  return make_bound([rule = adamw_rule_of(arguments, 5), arrays = adamw_arrays<T, M>(arguments),
                     count = stored_elements(arguments.outputs[0].type), threads = arguments.threads] {
    const std::optional<simd::AdamwRule> now = rule.now();
    if (!now) return skip_adamw(arrays, count);
    run_on_parts(count, threads, [&](std::int64_t first, std::int64_t part) {
      if constexpr (std::is_same_v<T, M>)
        simd::update_loops<T>().adamw(*now, arrays, first, part);
      else
        simd::update_loops<T>().adamw_with_floats(*now, arrays, first, part);
    });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const DType weight = arguments.outputs[0].type.dtype;
  return with_storage(weight, [&]<typename T>(T /*tag*/) {
    return arguments.outputs[2].type.dtype == weight ? bind_as<T, T>(arguments) : bind_as<T, float>(arguments);
  });
}

}  // namespace

constinit const KernelDef simd_adamw{.name = "simd_adamw", .op = "adamw", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
