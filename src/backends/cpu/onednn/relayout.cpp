#include <algorithm>

#include <fmt/format.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pieces.h"
#include "backends/cpu/storage.h"

// A value in another layout: images in logical order for a classifier, weights in the layout that a primitive reads.

namespace snug::backends::cpu {

namespace {

KernelMatch match_relayout(const KernelQuery& query) {
  for (const Type& type : {query.inputs[0], query.outputs[0]}) {
    if (type.dtype != DType::f32) return Refuse{to_string(type) + " is not f32"};
    if (auto reason = objection(type)) return Refuse{*reason};
  }
  try {
    const OmpThreads scope(query.threads);
    const dnnl::reorder::primitive_desc description(engine(), descriptor(query.inputs[0]), engine(), descriptor(query.outputs[0]),
                                                    booked_scratchpad());
    if (description.scratchpad_desc().get_size() > 0) return Refuse{"oneDNN wants scratch for this reorder"};
    return Accept{};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

std::unique_ptr<BoundKernel> bind_relayout(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_reorder(memory_at(descriptor(arguments.inputs[0].type), arguments.inputs[0].data),
                     memory_at(descriptor(arguments.outputs[0].type), arguments.outputs[0].data));
  return chain;
}

// 16-bit numbers are moved as bits: a library might convert them to floats.
KernelMatch match_half_relayout(const KernelQuery& query) {
  for (const Type& type : {query.inputs[0], query.outputs[0]}) {
    if (!is_16_bits(type)) return Refuse{to_string(type) + " is not bf16 or f16"};
    if (type.shape.rank() > 4) return Refuse{to_string(type) + " has more than 4 dimensions"};
  }
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_half_relayout(const KernelArguments& arguments) {
  const Operand& output = arguments.outputs[0];
  return make_bound([from = LayoutMap(arguments.inputs[0].type), to = LayoutMap(output.type),
                     in = elements<const std::uint16_t>(arguments.inputs[0]), out = elements<std::uint16_t>(output),
                     elements = output.type.elements(), stored = stored_elements(output.type), threads = arguments.threads] {
    if (stored != elements) std::fill_n(out, stored, std::uint16_t{0});  // padding of the layout is zero
    for_each_part(to.elements(), threads, 64, [&](int, Range part) {
      for_each_element(to, part.begin, part.end, [&](const auto& at, std::int64_t /*number*/) { out[to(at)] = in[from(at)]; });
    });
  });
}

// A view: where the plan gives both the same bytes there is nothing to do.
KernelMatch match_reshape(const KernelQuery& query) {
  if (bits_per_element(query.inputs[0].dtype) != 16) return Refuse{to_string(query.inputs[0]) + " has not 16 bits"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_reshape(const KernelArguments& arguments) {
  const Operand& output = arguments.outputs[0];
  const bool in_place = output.data == arguments.inputs[0].data;
  return copy_bytes(arguments.inputs[0].data, output.data, in_place ? Bytes(0) : output.type.bytes());
}

}  // namespace

constinit const KernelDef half_reshape{.name = "half_reshape", .op = "reshape", .match = match_reshape, .bind = bind_reshape};

constinit const KernelDef half_relayout{
    .name = "half_relayout", .op = "relayout", .match = match_half_relayout, .bind = bind_half_relayout};
constinit const KernelDef onednn_relayout{
    .name = "onednn_relayout", .op = "relayout", .match = match_relayout, .bind = bind_relayout};

}  // namespace snug::backends::cpu
