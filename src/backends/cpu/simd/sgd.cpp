#include "ops/updates/sgd.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/update_rule.h"
#include "ir/scalars.h"

// sgd(w, g, scalars, m?, gradient_norm?), element by element in memory order: any layout, as long
// as all operands have the same.

namespace snug::backends::cpu {

namespace {

// A cache line of the narrowest elements: threads that write neighboring parts do not share one.
constexpr std::int64_t kGrain = 32;

std::optional<std::string> objection_to(const KernelQuery& query) {
  const Type& weight = query.inputs[0];
  if (!is_stored(weight.dtype)) return to_string(weight) + " is not f32, bf16 or f16";
  for (std::size_t i = 1; i < ops::sgd_norm_input(query.attributes); ++i) {
    if (i != 2 && query.inputs[i] != weight) return to_string(query.inputs[i]) + " lies otherwise than the weight";
  }
  return std::nullopt;
}

template <bool Clips>
KernelMatch match(const KernelQuery& query) {
  if (ops::sgd_clips(query.attributes, query.inputs.size()) != Clips)
    return Refuse{Clips ? "this node does not clip" : "this node clips"};
  if (auto reason = objection_to(query)) return Refuse{*reason};
  return Accept{};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_as(const KernelArguments& arguments) {
  const Attributes& attributes = arguments.attributes;
  const bool has_momentum = ops::sgd_has_momentum(attributes);
  const bool clips = ops::sgd_clips(attributes, arguments.inputs.size());
  const simd::SgdArrays<T> arrays{.weight = elements<T>(arguments.inputs[0]),
                                  .gradient = elements<T>(arguments.inputs[1]),
                                  .momentum = has_momentum ? elements<T>(arguments.inputs[3]) : nullptr,
                                  .new_weight = elements<T>(arguments.outputs[0]),
                                  .new_gradient = elements<T>(arguments.outputs[1]),
                                  .new_momentum = has_momentum ? elements<T>(arguments.outputs[2]) : nullptr};
  const auto* norm = clips ? reinterpret_cast<const GradientNorm*>(arguments.inputs.back().data) : nullptr;
  return make_bound([rule = BoundUpdateRule(attributes), arrays, norm,
                     scalars = reinterpret_cast<const Scalars*>(arguments.inputs[2].data),
                     count = stored_elements(arguments.outputs[0].type), threads = arguments.threads] {
    const double factor = norm == nullptr ? 1 : norm->factor;
    if (scalars->skip_update != 0 || !std::isfinite(factor)) {
      std::fill_n(arrays.new_gradient, count, T{});
      if (arrays.new_weight != arrays.weight) std::copy_n(arrays.weight, count, arrays.new_weight);
      if (arrays.new_momentum != arrays.momentum) std::copy_n(arrays.momentum, count, arrays.new_momentum);
      return;
    }
    const simd::UpdateRule now = rule.now(*scalars, factor);
    // Small tensors are not worth another thread.
    const int parts = count < 4096 ? 1 : threads;
    for_each_part(count, parts, kGrain,
                  [&](int, Range part) { simd::update_loops<T>().sgd(now, arrays, part.begin, part.size()); });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_sgd{.name = "simd_sgd", .op = "sgd", .match = match<false>, .bind = bind};
constinit const KernelDef simd_clipped_sgd{.name = "simd_clipped_sgd", .op = "sgd", .match = match<true>, .bind = bind};

}  // namespace snug::backends::cpu
