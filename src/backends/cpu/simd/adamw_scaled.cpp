#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/adamw_rule.h"

// adamw_scaled(w, g, scalars, m, v, scales, updates, gradient_norm?), in memory order, for any layout. The largest moments of the
// parts are found in parallel; the largest of all does not depend on how many parts there are.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kGrain = 32;  // a cache line of the narrowest elements

// Small tensors are not worth another thread.
int parts_of(const Type& type, int threads) { return stored_elements(type) < 4096 ? 1 : threads; }

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return Refuse{to_string(weight) + " is not f32, bf16 or f16"};
  const std::int64_t parts = parts_of(weight, query.threads);
  return Accept{.workspace = Bytes(parts * static_cast<std::int64_t>(sizeof(simd::MomentPair)))};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return make_bound([rule = adamw_rule_of(arguments, 6), arrays = adamw_arrays<T, Half>(arguments),
                     scales = reinterpret_cast<const simd::MomentPair*>(arguments.inputs[5].data),
                     new_scales = reinterpret_cast<simd::MomentPair*>(arguments.outputs[4].data),
                     largest = reinterpret_cast<simd::MomentPair*>(arguments.workspace.data()), count = stored_elements(type),
                     parts = parts_of(type, arguments.threads)] {
    const simd::MomentPair now_scales = *scales;  // the new ones may lie in the same place
    const std::optional<simd::AdamwRule> now = rule.now();
    if (!now) {
      *new_scales = now_scales;
      return skip_adamw(arrays, count);
    }
    const simd::UpdateLoops<T>& loops = simd::update_loops<T>();
    for_each_part(count, parts, kGrain, [&](int part, Range range) {
      largest[part] = loops.largest_moments(*now, arrays, now_scales, range.begin, range.size());
    });
    simd::MomentPair all = largest[0];
    for (int part = 1; part < parts; ++part)
      all = {std::max(all.first, largest[part].first), std::max(all.second, largest[part].second)};
    *new_scales = {ops::moment_scale(all.first), ops::moment_scale(all.second)};
    for_each_part(count, parts, kGrain, [&](int, Range range) {
      loops.adamw_scaled(*now, arrays, now_scales, *new_scales, range.begin, range.size());
    });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_adamw_scaled{.name = "simd_adamw_scaled", .op = "adamw_scaled", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
