#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_momentum.h"
#include "ir/scalars.h"
#include "ops/quantised_momentum.h"

// sgd_quantised(w, g, scalars, codes, scales, gradient_norm?), block by block in memory order, whatever the layout.

namespace snug::backends::cpu {

namespace {

KernelMatch match(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (weight.dtype != DType::f32 || weight.storage.kind != Storage::Kind::dense)
    return Refuse{to_string(weight) + " is not dense f32"};
  return Accept{};
}

void copy(const Operand& from, const Operand& to) {
  if (from.data != to.data) std::memcpy(to.data, from.data, static_cast<std::size_t>(to.type.bytes().count()));
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Attributes& attributes = arguments.attributes;
  const simd::QuantisedSgdRule rule{.learning_rate = 0,
                                    .momentum = static_cast<float>(attributes.real("momentum")),
                                    .weight_decay = static_cast<float>(attributes.real("weight_decay")),
                                    .gradient_scale = 1,
                                    .nesterov = attributes.integer("nesterov") != 0};
  const std::vector<Operand> in(arguments.inputs.begin(), arguments.inputs.end());
  const std::vector<Operand> out(arguments.outputs.begin(), arguments.outputs.end());
  return make_bound([rule, in, out, threads = arguments.threads] {
    const auto* scalars = reinterpret_cast<const Scalars*>(in[2].data);
    const double factor = in.size() == 6 ? reinterpret_cast<const GradientNorm*>(in[5].data)->factor : 1;
    const std::int64_t elements = in[3].type.elements();
    if (scalars->skip_update != 0 || !std::isfinite(factor)) {
      std::fill_n(reinterpret_cast<float*>(out[1].data), elements, 0.0F);
      copy(in[0], out[0]);
      copy(in[3], out[2]);
      copy(in[4], out[3]);
      return;
    }
    simd::QuantisedSgdRule now = rule;
    now.learning_rate = static_cast<float>(scalars->learning_rate);
    now.gradient_scale = static_cast<float>(factor / scalars->loss_scale);
    for_each_part(ops::momentum_blocks(elements), threads, 1, [&](int, Range part) {
      for (std::int64_t block = part.begin; block < part.end; ++block) {
        const std::int64_t first = block * ops::kMomentumBlock;
        simd::sgd_quantised(now,
                            {.weight = reinterpret_cast<const float*>(in[0].data) + first,
                             .gradient = reinterpret_cast<const float*>(in[1].data) + first,
                             .codes = reinterpret_cast<const std::uint8_t*>(in[3].data) + first,
                             .scale = reinterpret_cast<const float*>(in[4].data)[block],
                             .new_weight = reinterpret_cast<float*>(out[0].data) + first,
                             .new_gradient = reinterpret_cast<float*>(out[1].data) + first,
                             .new_codes = reinterpret_cast<std::uint8_t*>(out[2].data) + first,
                             .new_scale = reinterpret_cast<float*>(out[3].data) + block},
                            std::min(ops::kMomentumBlock, elements - first));
      }
    });
  });
}

}  // namespace

constinit const KernelDef simd_sgd_quantised{.name = "simd_sgd_quantised", .op = "sgd_quantised", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
