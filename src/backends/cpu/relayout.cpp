#include <fmt/format.h>

#include "backends/cpu/onednn.h"
#include "backends/cpu/simd.h"

// A value in another layout: images in logical order for a classifier, weights in the arrangement that a primitive reads.

namespace snug::backends::cpu {

namespace {

KernelMatch match_relayout(const KernelQuery& query) {
  for (const Type& type : {query.inputs[0], query.outputs[0]}) {
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

}  // namespace

constinit const KernelDef onednn_relayout{
    .name = "onednn_relayout", .op = "relayout", .match = match_relayout, .bind = bind_relayout};

}  // namespace snug::backends::cpu
