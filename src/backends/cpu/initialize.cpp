#include <algorithm>

#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "ir/scalars.h"
#include "ops/random_draws.h"

// Initial values of states that lie in one of oneDNN's layouts: drawn in logical order into the workspace, then copied over, a
// block of output channels at a time where these lie one after the other.

namespace snug::backends::cpu {

namespace {

KernelMatch match_fill(const KernelQuery& query) {
  if (query.outputs[0].dtype != DType::f32) return Refuse{to_string(query.outputs[0]) + " is not f32"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_fill(const KernelArguments& arguments) {
  return make_bound([out = floats(arguments.outputs[0]), count = arguments.outputs[0].type.bytes().count() / 4,
                     value = static_cast<float>(arguments.attributes.real("value"))] { std::fill_n(out, count, value); });
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

std::unique_ptr<BoundKernel> bind_normal(const KernelArguments& arguments) {
  return bind_random(arguments, ops::draw_init_normal, arguments.attributes.real("std"));
}

std::unique_ptr<BoundKernel> bind_uniform(const KernelArguments& arguments) {
  return bind_random(arguments, ops::draw_init_uniform, arguments.attributes.real("bound"));
}

}  // namespace

constinit const KernelDef simd_fill{.name = "simd_fill", .op = "fill", .match = match_fill, .bind = bind_fill};
constinit const KernelDef onednn_init_normal{
    .name = "onednn_init_normal", .op = "init_normal", .match = match_random, .bind = bind_normal};
constinit const KernelDef onednn_init_uniform{
    .name = "onednn_init_uniform", .op = "init_uniform", .match = match_random, .bind = bind_uniform};

}  // namespace snug::backends::cpu
