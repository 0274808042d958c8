#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/pack.h"
#include "ir/example_rows.h"
#include "ir/scalars.h"

// Values in few bits and back, group by group in memory order.

namespace snug::backends::cpu {

namespace {

KernelMatch match_values(const Type& values) {
  if (!is_stored(values.dtype)) return Refuse{to_string(values) + " is not f32, bf16 or f16"};
  if (values.layout.kind == Layout::Kind::opaque) return Refuse{to_string(values) + " has padding"};
  return Accept{};
}

KernelMatch match_pack(const KernelQuery& query) { return match_values(query.inputs[0]); }
KernelMatch match_unpack(const KernelQuery& query) { return match_values(query.outputs[0]); }

// body(number, first element, elements) for every group of a value; small values are not worth another thread.
template <typename Body>
void for_each_group(std::int64_t elements, int threads, const Body& body) {
  const std::int64_t groups = ops::pack_groups(elements);
  for_each_part(groups, groups < 16 ? 1 : threads, 1, [&](int, Range part) {
    for (std::int64_t number = part.begin; number < part.end; ++number) {
      const std::int64_t first = number * ops::kPackGroup;
      body(number, first, std::min(ops::kPackGroup, elements - first));
    }
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_pack_of(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  return make_bound([x = static_cast<const T*>(elements<T>(arguments.inputs[0])),
                     scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data),
                     codes = reinterpret_cast<std::uint8_t*>(arguments.outputs[0].data),
                     ranges = reinterpret_cast<ops::PackRange*>(arguments.outputs[1].data),
                     bits = arguments.attributes.integer("bits"),
                     key = static_cast<std::uint64_t>(arguments.attributes.integer("key")), total = type.elements(),
                     per_example = elements_per_example(type, arguments.attributes), threads = arguments.threads] {
    const simd::PackRule rule{.bits = bits, .seed = scalars->seed, .counter_high = ops::pack_counter_high(key, scalars->step)};
    for_each_group(total, threads, [&](std::int64_t number, std::int64_t first, std::int64_t count) {
      simd::pack_loops<T>().pack(rule, ops::pack_first_block(scalars->first_example, per_example, number), x + first, count,
                                 codes + ops::pack_bytes(first, bits), ranges + number);
    });
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_unpack_to(const KernelArguments& arguments) {
  return make_bound([codes = reinterpret_cast<const std::uint8_t*>(arguments.inputs[0].data),
                     ranges = reinterpret_cast<const ops::PackRange*>(arguments.inputs[1].data),
                     x = elements<T>(arguments.outputs[0]), bits = arguments.attributes.integer("bits"),
                     total = arguments.outputs[0].type.elements(), threads = arguments.threads] {
    for_each_group(total, threads, [&](std::int64_t number, std::int64_t first, std::int64_t count) {
      simd::pack_loops<T>().unpack(bits, codes + ops::pack_bytes(first, bits), ranges[number], x + first, count);
    });
  });
}

std::unique_ptr<BoundKernel> bind_pack(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_pack_of<T>(arguments); });
}

std::unique_ptr<BoundKernel> bind_unpack(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) { return bind_unpack_to<T>(arguments); });
}

}  // namespace

constinit const KernelDef simd_pack{.name = "simd_pack", .op = "pack", .match = match_pack, .bind = bind_pack};
constinit const KernelDef simd_unpack{.name = "simd_unpack", .op = "unpack", .match = match_unpack, .bind = bind_unpack};

}  // namespace snug::backends::cpu
