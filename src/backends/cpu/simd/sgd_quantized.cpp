#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/simd/coded_block.h"
#include "backends/cpu/simd/update_rule.h"
#include "ir/scalars.h"
#include "ops/updates/sgd.h"

// sgd_quantized(w, g, scalars, codes, scales, gradient_norm?), block by block in memory order, for any layout.

namespace snug::backends::cpu {

namespace {

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return Refuse{to_string(weight) + " is not f32, bf16 or f16"};
  return Accept{};
}

void copy(const Operand& from, const Operand& to) {
  if (from.data != to.data) std::memcpy(to.data, from.data, static_cast<std::size_t>(to.type.bytes().count()));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  const std::vector<Operand> in(arguments.inputs.begin(), arguments.inputs.end());
  const std::vector<Operand> out(arguments.outputs.begin(), arguments.outputs.end());
  return make_bound([rule = BoundUpdateRule(arguments.attributes), in, out, threads = arguments.threads] {
    const auto* scalars = reinterpret_cast<const Scalars*>(in[2].data);
    const double factor = in.size() == 6 ? reinterpret_cast<const GradientNorm*>(in[5].data)->factor : 1;
    const std::int64_t total = in[3].type.elements();
    if (scalars->skip_update != 0 || !std::isfinite(factor)) {
      std::fill_n(elements<T>(out[1]), total, T{});
      copy(in[0], out[0]);
      copy(in[3], out[2]);
      copy(in[4], out[3]);
      return;
    }
    const simd::UpdateRule now = rule.now(*scalars, factor);
    const auto* codes = elements<std::uint8_t>(in[3]);
    auto* new_codes = elements<std::uint8_t>(out[2]);
    const auto* scales = elements<float>(in[4]);
    auto* new_scales = elements<float>(out[3]);
    for_each_block(total, threads, [&](std::int64_t block, std::int64_t first, std::int64_t count) {
      simd::update_loops<T>().sgd_quantized(
          now,
          {.weight = elements<T>(in[0]) + first,
           .gradient = elements<T>(in[1]) + first,
           .new_weight = elements<T>(out[0]) + first,
           .new_gradient = elements<T>(out[1]) + first,
           .momentum = coded_block(codes, new_codes, block, scales + block, new_scales + block)},
          first, count);
    });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_sgd_quantized{.name = "simd_sgd_quantised", .op = "sgd_quantised", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
