#include "backends/cpu/kernels.h"
#include "backends/cpu/simd/adamw_rule.h"
#include "backends/cpu/simd/coded_block.h"

// adamw_quantized(w, g, scalars, m, v, scales, updates, gradient_norm?), block by block in memory order, for any layout.

namespace snug::backends::cpu {

namespace {

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return Refuse{to_string(weight) + " is not f32, bf16 or f16"};
  return Accept{};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  return make_bound([rule = adamw_rule_of(arguments, 6), arrays = adamw_arrays<T, std::uint8_t>(arguments),
                     scales = reinterpret_cast<const simd::MomentPair*>(arguments.inputs[5].data),
                     new_scales = reinterpret_cast<simd::MomentPair*>(arguments.outputs[4].data),
                     count = arguments.inputs[3].type.elements(), threads = arguments.threads] {
    const std::optional<simd::AdamwRule> now = rule.now();
    if (!now) {
      if (new_scales != scales) std::copy_n(scales, ops::code_blocks(count), new_scales);
      return skip_adamw(arrays, count);
    }
    for_each_block(count, threads, [&](std::int64_t block, std::int64_t first, std::int64_t elements_here) {
      simd::update_loops<T>().adamw_quantized(
          *now,
          {.weight = arrays.weight + first,
           .gradient = arrays.gradient + first,
           .new_weight = arrays.new_weight + first,
           .new_gradient = arrays.new_gradient + first,
           .first = coded_block(arrays.first, arrays.new_first, block, &scales[block].first, &new_scales[block].first),
           .second = coded_block(arrays.second, arrays.new_second, block, &scales[block].second, &new_scales[block].second)},
          first, elements_here);
    });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_adamw_quantized{
    .name = "simd_adamw_quantized", .op = "adamw_quantized", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
