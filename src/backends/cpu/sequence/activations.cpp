#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/loops.h"
#include "backends/cpu/sequence/rows.h"
#include "ops/sequence/gated_linear_unit.h"

// Activations, element by element in memory order: any layout, as long as all operands have the same. Of a gated linear unit, row
// by row.

namespace snug::backends::cpu {

namespace {

using simd::Activation;

// A cache line of the narrowest elements: threads that write neighboring parts do not share one.
constexpr std::int64_t kGrain = 32;

Activation gelu_of(const Attributes& attributes) {
  return attributes.integer("tanh") != 0 ? Activation::gelu_by_tanh : Activation::gelu;
}
Activation silu_of(const Attributes& /*attributes*/) { return Activation::silu; }
using FindActivation = Activation (*)(const Attributes&);

KernelMatch match_same(const KernelQuery& query) {
  const Type& first = query.outputs[0];
  if (!is_stored(first.dtype)) return Refuse{to_string(first) + " is not f32, bf16 or f16"};
  for (const Type& type : query.inputs) {
    if (type != first) return Refuse{to_string(type) + " lies otherwise than " + to_string(first)};
  }
  return Accept{};
}

template <FindActivation Find>
std::unique_ptr<BoundKernel> bind_activation(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([which = Find(arguments.attributes), x = elements<T>(arguments.inputs[0]),
                       y = elements<T>(arguments.outputs[0]), count = stored_elements(type), threads = arguments.threads] {
      for_each_part(count, threads, kGrain, [&](int, Range part) {
        simd::activation_loops<T>().apply(which, x + part.begin, y + part.begin, part.size());
      });
    });
  });
}

template <FindActivation Find>
std::unique_ptr<BoundKernel> bind_gradient(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([which = Find(arguments.attributes), dy = elements<T>(arguments.inputs[0]),
                       x = elements<T>(arguments.inputs[1]), sum = addend_of<T>(arguments),
                       dx = elements<T>(arguments.outputs[0]), count = stored_elements(type), threads = arguments.threads] {
      for_each_part(count, threads, kGrain, [&](int, Range part) {
        simd::activation_loops<T>().gradient(which, dy + part.begin, x + part.begin, sum == nullptr ? nullptr : sum + part.begin,
                                             dx + part.begin, part.size());
      });
    });
  });
}

Activation activation_of(ops::GateActivation gate) {
  switch (gate) {
    case ops::GateActivation::sigmoid:
      return Activation::sigmoid;
    case ops::GateActivation::silu:
      return Activation::silu;
    case ops::GateActivation::gelu_by_tanh:
      return Activation::gelu_by_tanh;
  }
  throw InternalError("an activation that is none of a gated linear unit's");
}

KernelMatch match_gate(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0})) return Refuse{*reason};
  return Accept{};
}

KernelMatch match_gate_gradient(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0, 1})) return Refuse{*reason};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_gate(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([which = activation_of(ops::gate_activation(arguments.attributes)), x = elements<T>(arguments.inputs[0]),
                       y = elements<T>(arguments.outputs[0]), rows = type.shape[0], columns = type.shape[1],
                       threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        for (std::int64_t row = part.begin; row < part.end; ++row)
          simd::activation_loops<T>().gate(which, x + row * 2 * columns, y + row * columns, columns);
      });
    });
  });
}

std::unique_ptr<BoundKernel> bind_gate_gradient(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([which = activation_of(ops::gate_activation(arguments.attributes)), dy = elements<T>(arguments.inputs[0]),
                       x = elements<T>(arguments.inputs[1]), dx = elements<T>(arguments.outputs[0]), rows = type.shape[0],
                       columns = type.shape[1], threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        for (std::int64_t row = part.begin; row < part.end; ++row) {
          simd::activation_loops<T>().gate_gradient(which, dy + row * columns, x + row * 2 * columns, dx + row * 2 * columns,
                                                    columns);
        }
      });
    });
  });
}

}  // namespace

constinit const KernelDef simd_gelu{.name = "simd_gelu", .op = "gelu", .match = match_same, .bind = bind_activation<gelu_of>};
constinit const KernelDef simd_gelu_grad{
    .name = "simd_gelu_grad", .op = "gelu_grad", .match = match_same, .bind = bind_gradient<gelu_of>};
constinit const KernelDef simd_silu{.name = "simd_silu", .op = "silu", .match = match_same, .bind = bind_activation<silu_of>};
constinit const KernelDef simd_silu_grad{
    .name = "simd_silu_grad", .op = "silu_grad", .match = match_same, .bind = bind_gradient<silu_of>};
constinit const KernelDef simd_gated_linear_unit{
    .name = "simd_gated_linear_unit", .op = "gated_linear_unit", .match = match_gate, .bind = bind_gate};
constinit const KernelDef simd_gated_linear_unit_grad{.name = "simd_gated_linear_unit_grad",
                                                      .op = "gated_linear_unit_grad",
                                                      .match = match_gate_gradient,
                                                      .bind = bind_gate_gradient};

}  // namespace snug::backends::cpu
