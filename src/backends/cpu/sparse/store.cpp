#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/storage.h"
#include "backends/rewiring.h"
#include "backends/sparse_store.h"

// The ops that make and rewire the sparse store, for 16-bit values; the reference does it for floats.

namespace snug::backends::cpu {

namespace {

KernelMatch match_half(const KernelQuery& query) {
  const Type& values = query.inputs[0];
  if (!is_16_bits(values)) return Refuse{to_string(values) + " is not bf16 or f16"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_values(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const Attributes& attributes = arguments.attributes;
    return make_bound([slot = ops::SparseSlot::from(attributes), input = arguments.inputs[0], output = arguments.outputs[0],
                       columns = arguments.inputs[1].data, offsets = arguments.inputs[2].data,
                       scalars = reinterpret_cast<const Scalars*>(arguments.inputs[3].data),
                       key = static_cast<std::uint64_t>(attributes.integer("key")), spread = attributes.real("spread"),
                       draw = attributes.integer("uniform") != 0 ? ops::draw_init_uniform : ops::draw_init_normal,
                       threads = arguments.threads] {
      const SparseRows<T> rows{.values = brought_over<T>(input, output),
                               .columns = reinterpret_cast<const std::uint8_t*>(columns),
                               .rows = reinterpret_cast<const std::int32_t*>(offsets) + slot.first_row,
                               .bits = slot.bits};
      for_each_part(slot.rows(), threads, 1,
                    [&](int, Range part) { draw_values(slot, rows, part.begin, part.end, draw, scalars->seed, key, spread); });
    });
  });
}

std::unique_ptr<BoundKernel> bind_rewire(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) -> std::unique_ptr<BoundKernel> {
    return std::make_unique<BoundRewiring<T>>(arguments);
  });
}

}  // namespace

constinit const KernelDef half_init_sparse{
    .name = "half_init_sparse", .op = "init_sparse", .match = match_half, .bind = bind_values};
constinit const KernelDef half_rewire{.name = "half_rewire", .op = "rewire", .match = match_half, .bind = bind_rewire};

}  // namespace snug::backends::cpu
