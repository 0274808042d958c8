#include "backends/cpu/onednn/conv2d.h"

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/pieces.h"
#include "base/error.h"

// oneDNN's direct convolutions read activations channels-last and weights in its own blocked layouts: one for forward and the
// weight gradient, another for the data gradient. Where a weight has a different layout than the primitive wants, it is copied
// into the workspace first.

namespace snug::backends::cpu {

namespace {

constexpr std::string_view kWhole = "onednn";  // all channels and images at once

// ---- forward

struct Forward {
  Convolution conv;
  dnnl::convolution_forward::primitive_desc description;
  bool has_bias;

  Forward(std::span<const Type> inputs, const Type& output, const Attributes& attributes)
      : conv(inputs[0], inputs[1], output, attributes), has_bias(inputs.size() == 3) {
    if (has_bias) {
      const dnnl::memory::desc bias = descriptor(inputs[2]);
      description = conv.forward(conv.wanted_weight, &bias);
    } else {
      description = conv.forward(conv.wanted_weight);
    }
  }
  bool copies_weight() const { return description.weights_desc() != conv.weight; }
};

Bytes forward_workspace(const Forward& forward) {
  WorkspaceCutter cutter;
  if (forward.copies_weight()) cutter.cut(size_of(forward.description.weights_desc()));
  cutter.cut(size_of(forward.description.scratchpad_desc()));
  return cutter.used();
}

KernelMatch match_forward(const KernelQuery& query) {
  return accept_if_possible(query, [&]() -> KernelMatch {
    const Forward forward(query.inputs, query.outputs[0], query.attributes);
    return Accept{.workspace = forward_workspace(forward), .numerics = kWhole, .is_reference = is_reference(forward.description)};
  });
}

std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const Forward forward(types_of(arguments.inputs), arguments.outputs[0].type, arguments.attributes);
  const auto& description = forward.description;
  auto chain = std::make_unique<PrimitiveChain>();
  WorkspaceCutter cutter(arguments.workspace.data());
  dnnl::memory weight = memory_at(forward.conv.weight, arguments.inputs[1].data);
  if (forward.copies_weight()) {
    const dnnl::memory packed = memory_at(description.weights_desc(), cutter.cut(size_of(description.weights_desc())));
    chain->add_reorder(weight, packed);
    weight = packed;
  }
  std::vector<std::pair<int, dnnl::memory>> list{
      {DNNL_ARG_SRC, memory_at(forward.conv.input, arguments.inputs[0].data)},
      {DNNL_ARG_WEIGHTS, weight},
      {DNNL_ARG_DST, memory_at(forward.conv.output, arguments.outputs[0].data)},
      {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), cutter.cut(size_of(description.scratchpad_desc())))}};
  if (forward.has_bias)
    list.emplace_back(DNNL_ARG_BIAS, memory_at(descriptor(arguments.inputs[2].type), arguments.inputs[2].data));
  chain->add(dnnl::convolution_forward(description), list);
  return chain;
}

// ---- data gradient: (dy, w) -> dx

struct DataGradient {
  Convolution conv;
  dnnl::convolution_backward_data::primitive_desc description;

  DataGradient(const Type& dy, const Type& w, const Type& dx, const Attributes& attributes)
      : conv(dx, w, dy, attributes), description(conv.backward_data()) {}
  bool copies_weight() const { return description.weights_desc() != conv.weight; }
};

Bytes data_workspace(const DataGradient& gradient) {
  WorkspaceCutter cutter;
  if (gradient.copies_weight()) cutter.cut(size_of(gradient.description.weights_desc()));
  cutter.cut(size_of(gradient.description.scratchpad_desc()));
  return cutter.used();
}

KernelMatch match_grad_input(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"oneDNN's data gradient cannot add to its output"};
  return accept_if_possible(query, [&]() -> KernelMatch {
    const DataGradient gradient(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes);
    return Accept{.workspace = data_workspace(gradient), .numerics = kWhole, .is_reference = is_reference(gradient.description)};
  });
}

std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const DataGradient gradient(arguments.inputs[0].type, arguments.inputs[1].type, arguments.outputs[0].type,
                              arguments.attributes);
  const auto& description = gradient.description;
  auto chain = std::make_unique<PrimitiveChain>();
  WorkspaceCutter cutter(arguments.workspace.data());
  dnnl::memory weight = memory_at(gradient.conv.weight, arguments.inputs[1].data);
  if (gradient.copies_weight()) {
    const dnnl::memory packed = memory_at(description.weights_desc(), cutter.cut(size_of(description.weights_desc())));
    chain->add_reorder(weight, packed);
    weight = packed;
  }
  chain->add(
      dnnl::convolution_backward_data(description),
      {{DNNL_ARG_DIFF_DST, memory_at(gradient.conv.output, arguments.inputs[0].data)},
       {DNNL_ARG_WEIGHTS, weight},
       {DNNL_ARG_DIFF_SRC, memory_at(gradient.conv.input, arguments.outputs[0].data)},
       {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), cutter.cut(size_of(description.scratchpad_desc())))}});
  return chain;
}

// ---- weight gradient: (dy, x, sum?) -> dw

struct WeightGradient {
  Convolution conv;
  dnnl::convolution_backward_weights::primitive_desc description;
  bool adds;

  WeightGradient(const Type& dy, const Type& x, const Type& dw, const Attributes& attributes)
      : conv(x, dw, dy, attributes), description(conv.backward_weights(conv.wanted_gradient())), adds(accumulates(attributes)) {}
  // The primitive overwrites its output, so a sum, another layout or another type goes through a temporary gradient in the
  // workspace.
  bool in_place() const { return !adds && !changes_layout(); }
  bool changes_layout() const { return description.diff_weights_desc() != conv.weight; }
};

Bytes weight_workspace(const WeightGradient& gradient) {
  WorkspaceCutter cutter;
  if (!gradient.in_place()) cutter.cut(size_of(gradient.description.diff_weights_desc()));
  cutter.cut(size_of(gradient.description.scratchpad_desc()));
  return cutter.used();
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  return accept_if_possible(query, [&]() -> KernelMatch {
    const WeightGradient gradient(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes);
    return Accept{
        .workspace = weight_workspace(gradient), .numerics = kWhole, .is_reference = is_reference(gradient.description)};
  });
}

std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const WeightGradient gradient(arguments.inputs[0].type, arguments.inputs[1].type, arguments.outputs[0].type,
                                arguments.attributes);
  const auto& description = gradient.description;
  auto chain = std::make_unique<PrimitiveChain>();
  WorkspaceCutter cutter(arguments.workspace.data());
  const Operand& output = arguments.outputs[0];
  std::byte* fresh = gradient.in_place() ? output.data : cutter.cut(size_of(description.diff_weights_desc()));
  const dnnl::memory fresh_gradient = memory_at(description.diff_weights_desc(), fresh);
  chain->add(
      dnnl::convolution_backward_weights(description),
      {{DNNL_ARG_DIFF_DST, memory_at(gradient.conv.output, arguments.inputs[0].data)},
       {DNNL_ARG_SRC, memory_at(gradient.conv.input, arguments.inputs[1].data)},
       {DNNL_ARG_DIFF_WEIGHTS, fresh_gradient},
       {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), cutter.cut(size_of(description.scratchpad_desc())))}});
  if (gradient.in_place()) return chain;
  const std::byte* sum = gradient.adds ? arguments.inputs[2].data : nullptr;
  if (output.type.dtype != DType::f32) {
    chain->add_action(place_gradient(description.diff_weights_desc(), fresh, output.type, gradient.conv.geometry.groups, sum,
                                     output.data, arguments.threads));
  } else if (gradient.changes_layout()) {
    if (gradient.adds && sum != output.data) chain->add_action(copy_bytes(sum, output.data, output.type.bytes()));
    chain->add_reorder(fresh_gradient, memory_at(gradient.conv.weight, output.data), gradient.adds);
  } else {
    chain->add_action(add_elements(DType::f32, sum, fresh, output.data, size_of(description.diff_weights_desc()).count() / 4,
                                   arguments.threads));
  }
  return chain;
}

// ---- the same on one thread: every thread has its own transposed images

KernelMatch match_grad_weight_one_thread(const KernelQuery& query) {
  if (query.threads == 1) return Refuse{"there is one thread anyway"};
  if (query.inputs[0].dtype != DType::bf16) return Refuse{"only in bf16 do more threads need much more"};
  KernelQuery alone = query;
  alone.threads = 1;
  KernelMatch match = match_grad_weight(alone);
  if (auto* accept = std::get_if<Accept>(&match)) {
    accept->numerics = "onednn_one_thread";
    accept->slowdown = query.threads;
  }
  return match;
}

std::unique_ptr<BoundKernel> bind_grad_weight_one_thread(const KernelArguments& arguments) {
  KernelArguments alone = arguments;
  alone.threads = 1;
  return bind_grad_weight(alone);
}

}  // namespace

constinit const KernelDef onednn_conv2d_grad_weight_one_thread{.name = "onednn_conv2d_grad_weight_one_thread",
                                                               .op = "conv2d_grad_weight",
                                                               .match = match_grad_weight_one_thread,
                                                               .bind = bind_grad_weight_one_thread};
constinit const KernelDef onednn_conv2d{.name = "onednn_conv2d", .op = "conv2d", .match = match_forward, .bind = bind_forward};
constinit const KernelDef onednn_conv2d_grad_input{
    .name = "onednn_conv2d_grad_input", .op = "conv2d_grad_input", .match = match_grad_input, .bind = bind_grad_input};
constinit const KernelDef onednn_conv2d_grad_weight{
    .name = "onednn_conv2d_grad_weight", .op = "conv2d_grad_weight", .match = match_grad_weight, .bind = bind_grad_weight};

namespace {

// conv2d_grad_input(dy, w) -> dx
std::optional<Layout> data_gradient_weight_layout(const KernelQuery& query) {
  if (accumulates(query.attributes) || query.attributes.integer("groups") != 1) return std::nullopt;
  try {
    const OmpThreads scope(query.threads);
    return named_layout(
        DataGradient(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes).description.weights_desc());
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

// A forward primitive that falls back to a general matrix product in this layout would cost more than a copy.
bool runs_forward(const Convolution& conv, const dnnl::memory::desc& weight) { return is_direct(conv.forward(weight)); }

// Each of oneDNN's bf16 kernels has its own layout. This is the forward pass's without scratch, as fast as the one that oneDNN
// prefers; blocks of 16 x 16 channels have the same order in it as in the others.
std::optional<Layout> bfloat_weight_layout(const Convolution& conv) {
  const dnnl::memory::desc paired(conv.weight.dims(), conv.weight.data_type(), dnnl::memory::format_tag::ABcd8b16a2b);
  return runs_forward(conv, paired) ? named_layout(paired) : std::nullopt;
}

}  // namespace

namespace {

// Halves have the layout of the floats that they are computed as.
std::optional<Layout> half_weight_layout(const KernelQuery& query) {
  std::vector<Type> inputs, outputs;
  for (const Type& type : query.inputs) inputs.push_back(as_floats(type));
  for (const Type& type : query.outputs) outputs.push_back(as_floats(type));
  KernelQuery floats = query;
  floats.inputs = inputs;
  floats.outputs = outputs;
  auto layout = preferred_conv2d_weight_layout(floats);
  if (layout) layout->opaque_bytes = Bytes(layout->opaque_bytes.count() / 2);
  return layout;
}

}  // namespace

std::optional<Layout> preferred_conv2d_weight_layout(const KernelQuery& query) {
  if (query.inputs[1].dtype == DType::f16) {
    // Only the forward pass matters: a data gradient converts its weight anyway.
    return query.op.name == onednn_conv2d.op ? half_weight_layout(query) : std::nullopt;
  }
  if (objection(query.inputs[0]) || objection(query.inputs[1])) return std::nullopt;
  if (query.op.name == onednn_conv2d_grad_input.op) return data_gradient_weight_layout(query);
  if (query.op.name != onednn_conv2d.op) return std::nullopt;
  try {
    const OmpThreads scope(query.threads);
    const Convolution conv(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes);
    if (conv.geometry.groups != 1) return std::nullopt;
    if (query.inputs[1].dtype == DType::bf16) return bfloat_weight_layout(conv);
    const dnnl::memory::desc wanted = conv.backward_weights(conv.any_weight()).diff_weights_desc();
    auto layout = named_layout(wanted);
    if (!layout) return std::nullopt;
    return runs_forward(conv, wanted) ? layout : std::nullopt;
  } catch (const dnnl::error&) {
    return std::nullopt;  // oneDNN has no such convolution; another kernel will use the plain layout
  }
}

}  // namespace snug::backends::cpu
