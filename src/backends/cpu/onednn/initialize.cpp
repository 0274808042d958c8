#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/storage.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"

// Initial values of states that lie in one of oneDNN's layouts: drawn in logical order into the workspace, then copied, a block
// of output channels at a time where these are consecutive.

namespace snug::backends::cpu {

namespace {

KernelMatch match_fill(const KernelQuery& query) {
  if (!is_stored(query.outputs[0].dtype)) return Refuse{to_string(query.outputs[0]) + " is not f32, bf16 or f16"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_fill(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([out = elements<T>(arguments.outputs[0]), count = stored_elements(type),
                       value = stored<T>(arguments.attributes.real("value"))] { std::fill_n(out, count, value); });
  });
}

// Rows (output channels) that are drawn at a time: blocks of the layouts' 16, or 8, where there are only whole ones.
std::int64_t rows_at_a_time(const Type& type) {
  constexpr std::int64_t kBlock = 16;
  return type.shape[0] % kBlock == 0 ? kBlock : type.shape[0];
}

Type rows_of(Type type, std::int64_t rows) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[0] = rows;
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

Type in_logical_order(Type type) {
  type.layout = Layout::row_major();
  return type;
}

KernelMatch match_random(const KernelQuery& query) {
  const Type& type = query.outputs[0];
  if (type.dtype != DType::f32) return Refuse{to_string(type) + " is not f32"};
  if (auto reason = objection(type)) return Refuse{*reason};
  if (type.layout.kind != Layout::Kind::opaque) return Refuse{to_string(type) + " has a plain layout"};
  return Accept{.workspace = in_logical_order(rows_of(type, rows_at_a_time(type))).bytes()};
}

using Draw = double (*)(std::uint64_t seed, std::uint64_t key, std::uint64_t element);

std::unique_ptr<BoundKernel> bind_random(const KernelArguments& arguments, Draw draw, double spread) {
  const OmpThreads scope(arguments.threads);
  const Type& type = arguments.outputs[0].type;
  const std::int64_t rows = rows_at_a_time(type);
  const Type part = rows_of(type, rows);
  auto chain = std::make_unique<PrimitiveChain>();
  std::byte* target = arguments.outputs[0].data;
  for (std::int64_t first = 0; first < type.shape[0]; first += rows, target += size_of(descriptor(part)).count()) {
    chain->add_action(make_bound(
        [drawn = reinterpret_cast<float*>(arguments.workspace.data()), count = part.elements(), draw, spread,
         before = first / rows * part.elements(), key = static_cast<std::uint64_t>(arguments.attributes.integer("key")),
         scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data), threads = arguments.threads] {
          for_each_part(count, threads, 16, [&](int, Range range) {
            for (std::int64_t i = range.begin; i < range.end; ++i) {
              drawn[i] = static_cast<float>(draw(scalars->seed, key, static_cast<std::uint64_t>(before + i)) * spread);
            }
          });
        }));
    chain->add_reorder(memory_at(descriptor(in_logical_order(part)), arguments.workspace.data()),
                       memory_at(descriptor(part), target));
  }
  return chain;
}

// 16-bit numbers are written to their places one by one.
KernelMatch match_half_random(const KernelQuery& query) {
  const Type& type = query.outputs[0];
  if (!is_16_bits(type)) return Refuse{to_string(type) + " is not bf16 or f16"};
  if (type.shape.rank() > 4) return Refuse{to_string(type) + " has more than 4 dimensions"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_half_random(const KernelArguments& arguments, Draw draw, double spread) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([out = elements<T>(arguments.outputs[0]), map = LayoutMap(type), count = stored_elements(type), draw,
                       spread, key = static_cast<std::uint64_t>(arguments.attributes.integer("key")),
                       scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data), threads = arguments.threads] {
      std::fill_n(out, count, T{});  // padding of the layout is zero
      for_each_part(map.elements(), threads, 64, [&](int, Range part) {
        for_each_element(map, part.begin, part.end, [&](const auto& at, std::int64_t number) {
          out[map(at)] = stored<T>(draw(scalars->seed, key, static_cast<std::uint64_t>(number)) * spread);
        });
      });
    });
  });
}

std::unique_ptr<BoundKernel> bind_normal(const KernelArguments& arguments) {
  return bind_random(arguments, ops::draw_init_normal, arguments.attributes.real("std"));
}

std::unique_ptr<BoundKernel> bind_uniform(const KernelArguments& arguments) {
  return bind_random(arguments, ops::draw_init_uniform, arguments.attributes.real("bound"));
}

std::unique_ptr<BoundKernel> bind_half_normal(const KernelArguments& arguments) {
  return bind_half_random(arguments, ops::draw_init_normal, arguments.attributes.real("std"));
}

std::unique_ptr<BoundKernel> bind_half_uniform(const KernelArguments& arguments) {
  return bind_half_random(arguments, ops::draw_init_uniform, arguments.attributes.real("bound"));
}

}  // namespace

constinit const KernelDef half_init_normal{
    .name = "half_init_normal", .op = "init_normal", .match = match_half_random, .bind = bind_half_normal};
constinit const KernelDef half_init_uniform{
    .name = "half_init_uniform", .op = "init_uniform", .match = match_half_random, .bind = bind_half_uniform};
constinit const KernelDef simd_fill{.name = "simd_fill", .op = "fill", .match = match_fill, .bind = bind_fill};
constinit const KernelDef onednn_init_normal{
    .name = "onednn_init_normal", .op = "init_normal", .match = match_random, .bind = bind_normal};
constinit const KernelDef onednn_init_uniform{
    .name = "onednn_init_uniform", .op = "init_uniform", .match = match_random, .bind = bind_uniform};

}  // namespace snug::backends::cpu
