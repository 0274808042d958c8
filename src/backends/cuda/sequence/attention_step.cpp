#include "backends/cuda/sequence/attention_step.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ops/sequence/attention.h"

namespace snug::backends::cuda {

namespace {

launch::StepShape shape_of(const Call& call) {
  const auto g = ops::StepGeometry::from(call.input_shape(0), call.input_shape(1), call.attributes());
  const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  return {.examples = number(g.examples),
          .context = number(g.context),
          .heads = number(g.heads),
          .kv_heads = number(g.kv_heads),
          .head_size = number(g.head_size),
          .scale = static_cast<float>(call.attributes().real("scale"))};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_step(const Call& call) {
  const launch::StepOperands<T> operands{.qkv = call.in<T>(0),
                                         .keys_before = call.in<T>(1),
                                         .values_before = call.in<T>(2),
                                         .positions = call.in<std::int32_t>(3),
                                         .y = call.out<T>(0),
                                         .keys = call.out<T>(1),
                                         .values = call.out<T>(2),
                                         .weights = call.workspace<float>()};
  return call.launch(
      [operands, shape = shape_of(call)](cudaStream_t stream) { launch::attention_step<T>(stream, operands, shape); });
}

// A weight for each key, of every example and head.
Bytes workspace_of(const KernelQuery& query) {
  const auto g = ops::StepGeometry::from(query.inputs[0].shape, query.inputs[1].shape, query.attributes);
  return Bytes(g.examples * g.heads * g.context * static_cast<std::int64_t>(sizeof(float)));
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::real, Element::index}};

}  // namespace

constinit const KernelDef attention_step =
    define<[]<typename T>() { return bind_step<T>; }, kSignature, workspace_of>("cuda_attention_step");

}  // namespace snug::backends::cuda
